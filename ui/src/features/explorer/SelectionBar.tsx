/** What can be done with the selected rows of a list: delete them, as far as the user may. */

import { IconTrash } from "@tabler/icons-react";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { sentence } from "../../api/errors.ts";
import { deleteKindObject, type KindObject } from "../../api/kinds.ts";
import type { Cluster } from "../../api/types.ts";
import { count } from "../../lib/quantity.ts";
import { Button } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Field } from "../../ui/Field.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { isProduction } from "../clusters/model.ts";
import styles from "./Explorer.module.css";
import { deletable } from "./model.ts";

/** Names that the dialog lists. */
const NAMES_SHOWN = 10;
/** From here on the name of the cluster has to be typed. */
const MANY = 10;
/** Requests at a time. */
const AT_ONCE = 4;

interface SelectionProps {
  cluster: Cluster;
  type: string;
  /** The words for the kind. */
  text: string;
  selected: readonly KindObject[];
  onClear(): void;
}

export function SelectionBar(props: SelectionProps) {
  const { cluster, selected, onClear } = props;
  const [asking, setAsking] = useState(false);
  const allowed = deletable(selected);
  const denial =
    allowed.length === 0
      ? `Your roles in ${cluster.name} do not let you delete any of these.`
      : undefined;
  return (
    <section className={styles.selection} aria-label="Selection">
      <span className="strong">{count(selected.length)} selected</span>
      <span className="grow" />
      <Button small deniedBecause={denial} onClick={() => setAsking(true)}>
        {!denial && <IconTrash size={16} stroke={1.5} />}
        Delete…
      </Button>
      <Button small onClick={onClear}>
        Clear
      </Button>
      {asking && <DeleteDialog {...props} onClose={() => setAsking(false)} />}
    </section>
  );
}

interface DeleteDialogProps extends SelectionProps {
  onClose(): void;
}

function DeleteDialog({ cluster, type, text, selected, onClear, onClose }: DeleteDialogProps) {
  const client = useQueryClient();
  const [typed, setTyped] = useState("");
  const allowed = deletable(selected);
  const left = selected.length - allowed.length;
  const mustType = isProduction(cluster) || allowed.length >= MANY;
  const blocked =
    mustType && typed.trim() !== cluster.name ? `Type ${cluster.name} first.` : undefined;
  const remove = useMutation({
    mutationFn: () => deleteAll(cluster.id, type, allowed),
    onSuccess: (failures) => {
      void client.invalidateQueries({ queryKey: ["kind-list", cluster.id, type] });
      if (failures.length > 0) return;
      notify("rem", `Deleting ${count(allowed.length)} ${text}`);
      onClear();
      onClose();
    },
  });
  const failures = remove.data ?? [];
  return (
    <Dialog
      title={`Delete ${count(allowed.length)} ${text}?`}
      subtitle={cluster.name}
      onClose={onClose}
      footer={
        <>
          <Button data-autofocus onClick={onClose}>
            Keep
          </Button>
          <Button kind="danger" disabledBecause={blocked} onClick={() => remove.mutate()}>
            {remove.isPending ? "Under way…" : "Delete"}
          </Button>
        </>
      }
    >
      <ul className={styles.names}>
        {allowed.slice(0, NAMES_SHOWN).map(({ id }) => (
          <li key={id}>{id}</li>
        ))}
        {allowed.length > NAMES_SHOWN && <li>and {count(allowed.length - NAMES_SHOWN)} more</li>}
      </ul>
      <p className="second">
        Kubernetes also deletes what these objects own.
        {left > 0 && ` ${count(left)} of the selected stay: you may not delete them.`}
      </p>
      {mustType && (
        <Field
          label={`Type ${cluster.name}`}
          value={typed}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => setTyped(event.target.value)}
        />
      )}
      {failures.length > 0 && (
        <Notice tone="err" title={`${count(failures.length)} were not deleted.`}>
          {failures.slice(0, NAMES_SHOWN).join(" ")}
        </Notice>
      )}
    </Dialog>
  );
}

/** Deletes objects, some at a time; returns why some were not deleted. */
async function deleteAll(
  clusterId: string,
  type: string,
  objects: readonly KindObject[],
): Promise<string[]> {
  const failures: string[] = [];
  const todo = [...objects];
  const work = async () => {
    for (let object = todo.pop(); object; object = todo.pop()) {
      try {
        await deleteKindObject(clusterId, type, object.id);
      } catch (error) {
        failures.push(`${object.id}: ${sentence(error)}`);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return failures;
}
