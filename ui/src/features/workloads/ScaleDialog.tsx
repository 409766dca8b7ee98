/** How many pods a workload has. */

import { sentence } from "../../api/errors.ts";
import { Button } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Field } from "../../ui/Field.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { scaled } from "./model.ts";
import { useWorkloadChange, type WorkloadProps } from "./WorkloadActions.tsx";

/** More is a typing error: a cluster has fewer pods. */
const REPLICAS_MAX = 100_000;
const FORM = "scale-workload";

interface ScaleDialogProps extends WorkloadProps {
  onClose(): void;
}

export function ScaleDialog({ kind, workload, onClose }: ScaleDialogProps) {
  const change = useWorkloadChange(kind, workload, onClose);
  const { name } = workload.metadata;
  return (
    <Dialog
      title={`Scale ${name}`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" form={FORM}>
            {change.isPending ? "Under way…" : "Scale"}
          </Button>
        </>
      }
    >
      <form
        id={FORM}
        onSubmit={(event) => {
          event.preventDefault();
          const replicas = Number(new FormData(event.currentTarget).get("replicas"));
          if (!change.isPending) {
            change.mutate({ change: scaled(replicas), done: `${name} gets ${replicas} pods` });
          }
        }}
      >
        <Field
          label="Pods"
          name="replicas"
          type="number"
          min={0}
          max={REPLICAS_MAX}
          defaultValue={workload.spec.replicas ?? 1}
          help="An autoscaler that targets it sets its own number again."
          required
          data-autofocus
        />
        {change.isError && (
          <Notice tone="err" title="It was not scaled.">
            {sentence(change.error)}
          </Notice>
        )}
      </form>
    </Dialog>
  );
}
