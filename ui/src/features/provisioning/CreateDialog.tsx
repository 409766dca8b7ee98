/** A cluster that a driver makes: its options are those that the driver declares. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { driverOptionsQuery, driversQuery } from "../../api/drivers.ts";
import { sentence } from "../../api/errors.ts";
import { createCluster } from "../../api/provisioning.ts";
import { clustersQuery } from "../../api/queries.ts";
import { paths } from "../../paths.ts";
import { Field } from "../../ui/Field.tsx";
import { Notice, Skeleton } from "../../ui/Notice.tsx";
import { Select } from "../../ui/Select.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { FormDialog } from "../forms/FormDialog.tsx";
import { formFields, formValues } from "../forms/fields.ts";
import { SchemaFields } from "../forms/SchemaFields.tsx";
import { firstOptions, usableDrivers } from "./model.ts";

/** The name of the cluster; no option of a driver has this name in the form. */
const NAME = "cluster-name";
/** What the server fills in. */
const LEFT_OUT = ["driverName", "displayName", "name"];

export function CreateDialog({ onClose }: { onClose(): void }) {
  const drivers = useQuery(driversQuery);
  const usable = usableDrivers(drivers.data ?? []);
  const [chosen, setChosen] = useState<string>();
  const driver = usable.find(({ id }) => id === chosen) ?? usable[0];
  const client = useQueryClient();
  const navigate = useNavigate();
  const schema = useQuery(driverOptionsQuery(driver));
  const fields = schema.data ? formFields(schema.data, LEFT_OUT) : [];
  const create = useMutation({
    mutationFn: ({ data, field }: { data: FormData; field: string }) =>
      createCluster(String(data.get(NAME) ?? "").trim(), field, formValues(fields, data)),
    onSuccess: ({ name }) => {
      notify("ok", `${name} is being made`);
      void client.invalidateQueries({ queryKey: clustersQuery.queryKey });
      onClose();
      void navigate(paths.cluster(name));
    },
  });
  return (
    <FormDialog
      title="Create cluster"
      subtitle="A driver makes it at a provider, and later changes and removes it."
      wide
      verb="Create"
      change={create}
      failure="It was not created."
      onSubmit={(data) => {
        if (schema.data) create.mutate({ data, field: schema.data.id });
      }}
      onClose={onClose}
    >
      <Field
        label="Name"
        name={NAME}
        required
        autoComplete="off"
        spellCheck={false}
        data-autofocus
      />
      <Select label="Driver" value={driver?.id ?? ""} onChange={setChosen}>
        {usable.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </Select>
      {schema.isPending && <Skeleton rows={6} what="the options of the driver" />}
      {schema.isError && (
        <Notice tone="err" title="The options of the driver could not be read.">
          {sentence(schema.error)}
        </Notice>
      )}
      {/* A key of its own: another driver has other fields, also where names are the same. */}
      {driver && schema.data && (
        <SchemaFields
          key={driver.id}
          fields={fields}
          first={firstOptions(
            driver,
            fields.map(({ name }) => name),
          )}
          described
        />
      )}
    </FormDialog>
  );
}
