/** Draining a node: what may be lost, and how long it may take. */

import { useMutation } from "@tanstack/react-query";
import { drainNode } from "../../api/queries.ts";
import type { Node } from "../../api/types.ts";
import { Check } from "../../ui/Check.tsx";
import { Field } from "../../ui/Field.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { FormDialog } from "../forms/FormDialog.tsx";
import styles from "./DrainDialog.module.css";

/** Longest time that the server gives a drain, in minutes. */
const MINUTES_MAX = 180;

interface DrainDialogProps {
  node: Node;
  onClose(): void;
}

export function DrainDialog({ node, onClose }: DrainDialogProps) {
  const drain = useMutation({
    mutationFn: (form: FormData) =>
      drainNode(node, {
        force: form.has("force"),
        deleteLocalData: form.has("deleteLocalData"),
        gracePeriod: form.get("grace") ? Number(form.get("grace")) : -1,
        timeout: Number(form.get("minutes")) * 60,
      }),
    onSuccess: () => {
      notify("ok", `Draining ${node.name}`);
      onClose();
    },
  });
  return (
    <FormDialog
      title={`Drain ${node.name}?`}
      verb="Drain"
      change={drain}
      failure="It was not drained."
      onSubmit={drain.mutate}
      onClose={onClose}
    >
      <p className="second">
        The node is cordoned and its pods are evicted, as disruption budgets allow. They start again
        on other nodes if there is room. Pods of DaemonSets stay.
      </p>
      <Check name="force">Also pods that nothing starts again</Check>
      <Check name="deleteLocalData">Also pods that lose their data in an emptyDir</Check>
      <div className={styles.times}>
        <Field
          label="Give up after, in minutes"
          name="minutes"
          type="number"
          min={1}
          max={MINUTES_MAX}
          defaultValue={2}
          required
        />
        <Field
          label="Seconds for each pod to end"
          name="grace"
          type="number"
          min={0}
          placeholder="its own"
        />
      </div>
    </FormDialog>
  );
}
