/** A driver by the address of its program. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { addDriver, driversQuery, type NewDriver } from "../../api/drivers.ts";
import { Field } from "../../ui/Field.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { FormDialog } from "../forms/FormDialog.tsx";
import { hostsOf } from "./model.ts";

export function AddDriverDialog({ onClose }: { onClose(): void }) {
  const client = useQueryClient();
  const add = useMutation({
    mutationFn: (data: FormData) => addDriver(driverOf(data)),
    onSuccess: () => {
      notify("ok", "The driver is being fetched");
      void client.invalidateQueries({ queryKey: driversQuery.queryKey });
      onClose();
    },
  });
  return (
    <FormDialog
      title="Add driver"
      subtitle="The server fetches it and runs it in a sandbox."
      verb="Add"
      change={add}
      failure="It was not added."
      onSubmit={add.mutate}
      onClose={onClose}
    >
      <Field
        label="Address of the program"
        help="For linux, or an archive (.tar, .tar.gz, .zip) with it. Its name begins with kontainer-engine-driver-"
        name="url"
        type="url"
        required
        autoComplete="off"
        data-autofocus
      />
      <Field
        label="Checksum"
        help="SHA-256 or SHA-512. Without it, what comes first is used, and no other under this address."
        name="checksum"
        autoComplete="off"
      />
      <Field
        label="Name"
        help="Else the one in the name of the file."
        name="name"
        autoComplete="off"
      />
      <Field
        label="Address of a component"
        help="For other web interfaces; this one makes its form from the driver's options."
        name="uiUrl"
        type="url"
        autoComplete="off"
      />
      <Field
        label="Hosts that the component calls"
        help="With spaces between them."
        name="domains"
        autoComplete="off"
      />
    </FormDialog>
  );
}

function driverOf(data: FormData): NewDriver {
  const text = (field: string) => String(data.get(field) ?? "").trim();
  const [name, checksum, uiUrl] = [text("name"), text("checksum"), text("uiUrl")];
  const domains = hostsOf(text("domains"));
  return {
    url: text("url"),
    active: true,
    ...(name && { name }),
    ...(checksum && { checksum }),
    ...(uiUrl && { uiUrl }),
    ...(domains.length > 0 && { whitelistDomains: domains }),
  };
}
