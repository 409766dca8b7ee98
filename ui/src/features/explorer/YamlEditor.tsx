/**
 * Changes an object as YAML: the cluster checks the text before anything is saved, and shows what
 * it would change.
 */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError, sentence } from "../../api/errors.ts";
import { changeKindObject, kindsQuery, replacement } from "../../api/kinds.ts";
import { changedLines } from "../../lib/diff.ts";
import { Button } from "../../ui/Button.tsx";
import { DiffView } from "../../ui/DiffView.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { useCluster } from "../clusters/ClusterPage.tsx";
import styles from "./Explorer.module.css";
import { schemaOf } from "./model.ts";
import { YamlText } from "./YamlText.tsx";

interface YamlEditorProps {
  type: string;
  id: string;
  /** The object as it was read. */
  before: string;
  onDone(): void;
}

export function YamlEditor({ type, id, before, onDone }: YamlEditorProps) {
  const cluster = useCluster();
  const client = useQueryClient();
  const { data: kinds = [] } = useQuery(kindsQuery(cluster.id));
  const [text, setText] = useState(before);
  const review = useMutation({
    mutationFn: () => changeKindObject(cluster.id, type, id, replacement(text), true),
  });
  const save = useMutation({
    mutationFn: () => changeKindObject(cluster.id, type, id, replacement(text)),
    onSuccess: () => {
      notify("ok", `Saved ${id}`);
      void client.invalidateQueries({ queryKey: ["kind-object", cluster.id, type, id] });
      void client.invalidateQueries({ queryKey: ["kind-yaml", cluster.id, type, id] });
      onDone();
    },
  });
  const error = save.error ?? review.error;
  const unchanged = text === before ? "Nothing has been changed." : undefined;
  return (
    <>
      <YamlText
        label={`YAML of ${id}`}
        text={text}
        rows={Math.min(Math.max(text.split("\n").length + 1, 12), 40)}
        schema={schemaOf(kinds, type)}
        onChange={(next) => {
          setText(next);
          // What was reviewed is another text.
          review.reset();
          save.reset();
        }}
      />
      {error && (
        <Notice tone="err" title="Nothing was saved.">
          {error instanceof ApiError && error.status === 409
            ? "Somebody has changed it since you read it. Copy your text, cancel, and edit it again."
            : sentence(error)}
        </Notice>
      )}
      {review.data !== undefined && <DiffView lines={changedLines(before, review.data)} />}
      <div className={styles.bar}>
        {review.data === undefined ? (
          <Button kind="primary" disabledBecause={unchanged} onClick={() => review.mutate()}>
            {review.isPending ? "Checking…" : "Review changes"}
          </Button>
        ) : (
          <Button kind="primary" onClick={() => save.mutate()}>
            {save.isPending ? "Saving…" : "Save"}
          </Button>
        )}
        <Button onClick={onDone}>Cancel</Button>
      </div>
    </>
  );
}
