/** What can be done with the selected rows of a list: delete them, as far as the user may. */

import { IconTrash } from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { sentence } from "../../api/errors.ts";
import { deleteKindObject, type KindObject } from "../../api/kinds.ts";
import type { Cluster } from "../../api/types.ts";
import { count } from "../../lib/quantity.ts";
import { Button } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Field } from "../../ui/Field.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { isProduction } from "../clusters/model.ts";
import { forEach, operate } from "../operations/operations.ts";
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
  const remove = () => {
    void deleteAll(cluster, type, text, allowed).then(
      () => void client.invalidateQueries({ queryKey: ["kind-list", cluster.id, type] }),
    );
    onClear();
    onClose();
  };
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
          <Button kind="danger" disabledBecause={blocked} onClick={remove}>
            Delete
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
    </Dialog>
  );
}

/** Deletes objects, some at a time, as an operation. */
async function deleteAll(
  cluster: Cluster,
  type: string,
  text: string,
  objects: readonly KindObject[],
): Promise<void> {
  const title = `Deleting ${count(objects.length)} ${text} of ${cluster.name}`;
  notify("rem", title);
  const ended = await operate(title, objects.length, ({ signal, step, failure }) =>
    forEach(objects, AT_ONCE, signal, async ({ id }) => {
      try {
        await deleteKindObject(cluster.id, type, id);
        step(`Deleted ${id}`);
      } catch (error) {
        failure(`${id}: ${sentence(error)}`);
      }
    }),
  );
  if (ended === "failed") notify("err", `${title} failed in part: see the operations below`);
}
