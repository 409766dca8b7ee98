/** A new token of the signed-in user, shown once. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { projectsQuery } from "../../api/projects.ts";
import { clustersQuery } from "../../api/queries.ts";
import { createToken, type NewToken, tokensQuery } from "../../api/tokens.ts";
import { Button } from "../../ui/Button.tsx";
import { Code } from "../../ui/Code.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Field } from "../../ui/Field.tsx";
import { Select } from "../../ui/Select.tsx";
import { FormDialog } from "../forms/FormDialog.tsx";
import { LIFETIMES } from "./model.ts";

/** Of the lifetimes. */
const USUAL_LIFETIME = 2;

export function CreateTokenDialog({ onClose }: { onClose(): void }) {
  const client = useQueryClient();
  const { data: clusters = [] } = useQuery(clustersQuery);
  const [clusterId, setClusterId] = useState("");
  const projects = useQuery({ ...projectsQuery(clusterId), enabled: clusterId !== "" });
  const create = useMutation({
    mutationFn: (data: FormData) => createToken(tokenOf(data)),
    onSuccess: () => client.invalidateQueries({ queryKey: tokensQuery.queryKey }),
  });
  if (create.data) {
    return (
      <Dialog
        title="Your new token"
        subtitle={create.data.description}
        onClose={onClose}
        footer={<Button onClick={onClose}>Done</Button>}
      >
        <p>Keep it where passwords are: it is shown only now.</p>
        <Code text={create.data.token ?? ""} what="the token" focused />
      </Dialog>
    );
  }
  return (
    <FormDialog
      title="Create token"
      subtitle="For a program that acts as you."
      verb="Create"
      change={create}
      failure="It was not created."
      onSubmit={create.mutate}
      onClose={onClose}
    >
      <Field label="Description" name="description" required autoComplete="off" data-autofocus />
      <Select label="Lifetime" name="lifetime" defaultValue={USUAL_LIFETIME}>
        {LIFETIMES.map(({ text }, index) => (
          <option key={text} value={index}>
            {text}
          </option>
        ))}
      </Select>
      <Select label="Cluster" name="cluster" onChange={setClusterId}>
        <option value="">All, and the server itself</option>
        {clusters.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </Select>
      {clusterId && (
        <Select label="Project" name="project">
          <option value="">All of the cluster</option>
          {(projects.data ?? []).map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </Select>
      )}
    </FormDialog>
  );
}

function tokenOf(data: FormData): NewToken {
  const text = (field: string) => String(data.get(field) ?? "").trim();
  return {
    description: text("description"),
    ttl: LIFETIMES[Number(text("lifetime"))]?.milliseconds ?? 0,
    ...(text("cluster") && { clusterId: text("cluster") }),
    ...(text("project") && { projectId: text("project") }),
  };
}
