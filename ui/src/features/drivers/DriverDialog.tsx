/** A driver by the address of its program: added, or changed to another version of it. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import {
  addDriver,
  type ClusterDriver,
  changeDriver,
  type DriverFields,
  driversQuery,
} from "../../api/drivers.ts";
import { Field } from "../../ui/Field.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { FormDialog } from "../forms/FormDialog.tsx";
import { changedFields, driverName, hostsOf } from "./model.ts";

interface DriverDialogProps {
  /** The driver to change; a new one if it is missing. */
  driver?: ClusterDriver;
  onClose(): void;
}

export function DriverDialog({ driver, onClose }: DriverDialogProps) {
  const client = useQueryClient();
  const save = useMutation({
    mutationFn: (fields: DriverFields) =>
      driver
        ? changeDriver(driver.id, changedFields(driver, fields))
        : addDriver({ ...fields, active: true }),
    onSuccess: () => {
      notify("ok", driver ? `Changed ${driverName(driver)}` : "The driver is being fetched");
      void client.invalidateQueries({ queryKey: driversQuery.queryKey });
      onClose();
    },
  });
  return (
    <FormDialog
      title={driver ? `Change ${driverName(driver)}` : "Add driver"}
      subtitle={
        driver
          ? "Its clusters stay with it, and another program is used from their next change on."
          : "The server fetches it and runs it in a sandbox."
      }
      verb={driver ? "Change" : "Add"}
      change={save}
      failure={driver ? "It was not changed." : "It was not added."}
      onSubmit={(data) => save.mutate(fieldsOf(data))}
      onClose={onClose}
    >
      <Field
        label="Address of the program"
        help="For linux, or an archive (.tar, .tar.gz, .zip) with it. Its name begins with kontainer-engine-driver-"
        name="url"
        defaultValue={driver?.url ?? ""}
        type="url"
        required
        autoComplete="off"
        data-autofocus
      />
      <Field
        label="Checksum"
        help="SHA-256 or SHA-512. Without it, what comes first is used, and no other under this address."
        name="checksum"
        defaultValue={driver?.checksum ?? ""}
        autoComplete="off"
      />
      <Field
        label="Name"
        help="Else the one in the name of the file."
        name="name"
        defaultValue={driver?.name ?? ""}
        autoComplete="off"
      />
      <Field
        label="Address of a component"
        help="For other web interfaces; this one makes its form from the driver's options."
        name="uiUrl"
        defaultValue={driver?.uiUrl ?? ""}
        type="url"
        autoComplete="off"
      />
      <Field
        label="Hosts that the component calls"
        help="With spaces between them."
        name="domains"
        defaultValue={driver?.whitelistDomains?.join(" ")}
        autoComplete="off"
      />
    </FormDialog>
  );
}

/** All fields: an empty one takes what was there away. */
function fieldsOf(data: FormData): DriverFields {
  const text = (field: string) => String(data.get(field) ?? "").trim();
  return {
    url: text("url"),
    name: text("name"),
    checksum: text("checksum"),
    uiUrl: text("uiUrl"),
    whitelistDomains: hostsOf(text("domains")),
  };
}
