/** How many pods a workload has. */

import { Field } from "../../ui/Field.tsx";
import { FormDialog } from "../forms/FormDialog.tsx";
import { scaled } from "./model.ts";
import { useWorkloadChange, type WorkloadProps } from "./WorkloadActions.tsx";

/** More is a typing error: a cluster has fewer pods. */
const REPLICAS_MAX = 100_000;

interface ScaleDialogProps extends WorkloadProps {
  onClose(): void;
}

export function ScaleDialog({ kind, workload, onClose }: ScaleDialogProps) {
  const change = useWorkloadChange(kind, workload, onClose);
  const { name } = workload.metadata;
  return (
    <FormDialog
      title={`Scale ${name}`}
      verb="Scale"
      change={change}
      failure="It was not scaled."
      onSubmit={(data) => {
        const replicas = Number(data.get("replicas"));
        change.mutate({ change: scaled(replicas), done: `${name} gets ${replicas} pods` });
      }}
      onClose={onClose}
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
    </FormDialog>
  );
}
