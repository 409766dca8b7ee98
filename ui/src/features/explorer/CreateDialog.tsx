/** A new object, from YAML that the cluster checks first. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { sentence } from "../../api/errors.ts";
import { createKindObject, type KindSchema } from "../../api/kinds.ts";
import { paths } from "../../paths.ts";
import { Button } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { useCluster } from "../clusters/ClusterPage.tsx";
import { firstYaml } from "./model.ts";
import { YamlText } from "./YamlText.tsx";

const LINES = 20;

interface CreateDialogProps {
  schema: KindSchema;
  /** Of the list, if it has one. */
  namespace: string | undefined;
  onClose(): void;
}

export function CreateDialog({ schema, namespace, onClose }: CreateDialogProps) {
  const cluster = useCluster();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [text, setText] = useState(() => firstYaml(schema, namespace));
  const { kind } = schema.attributes;
  const type = schema.pluralName;
  const check = useMutation({
    mutationFn: () => createKindObject(cluster.id, type, text, true),
  });
  const create = useMutation({
    mutationFn: () => createKindObject(cluster.id, type, text, false),
    onSuccess: (id) => {
      notify("ok", `Created ${id}`);
      void client.invalidateQueries({ queryKey: ["kind-list", cluster.id, type] });
      void navigate(paths.kindObject(cluster.name, type, id));
    },
  });
  const error = create.error ?? check.error;
  return (
    <Dialog
      title={`Create ${kind}`}
      subtitle={`In ${cluster.name}`}
      wide
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button onClick={() => check.mutate()}>{check.isPending ? "Checking…" : "Check"}</Button>
          <Button kind="primary" onClick={() => create.mutate()}>
            {create.isPending ? "Under way…" : "Create"}
          </Button>
        </>
      }
    >
      <YamlText
        label={`YAML of the new ${kind}`}
        text={text}
        rows={LINES}
        schema={schema}
        isFirst
        onChange={(next) => {
          setText(next);
          check.reset();
          create.reset();
        }}
      />
      <div aria-live="polite">
        {error && (
          <Notice tone="err" title="Nothing was created.">
            {sentence(error)}
          </Notice>
        )}
        {check.data && (
          <Notice tone="ok" title="The cluster would take it.">
            {check.data}
          </Notice>
        )}
      </div>
    </Dialog>
  );
}
