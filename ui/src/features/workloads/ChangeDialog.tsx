/** A change of a workload that is shown, by a trial in the cluster, before it is made. */

import { useQuery } from "@tanstack/react-query";
import type { Change } from "../../api/client.ts";
import { sentence } from "../../api/errors.ts";
import { changeKindObject, kindYamlQuery } from "../../api/kinds.ts";
import { changedLines } from "../../lib/diff.ts";
import { Button } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { DiffView } from "../../ui/DiffView.tsx";
import { Notice, Skeleton } from "../../ui/Notice.tsx";
import { useCluster } from "../clusters/ClusterPage.tsx";
import { useWorkloadChange, type WorkloadProps } from "./WorkloadActions.tsx";

interface ChangeDialogProps extends WorkloadProps {
  title: string;
  subtitle?: string;
  /** Nothing before the user has said what to change. */
  change: Change | undefined;
  /** What is said when it is made. */
  done: string;
  /** The verb of the button. */
  verb: string;
  /** The button in its place before there is a change. */
  before?: React.ReactNode;
  children?: React.ReactNode;
  onClose(): void;
}

export function ChangeDialog(props: ChangeDialogProps) {
  const { kind, workload, title, subtitle, change, done, verb, before, children, onClose } = props;
  const cluster = useCluster();
  const apply = useWorkloadChange(kind, workload, onClose);
  const trial = useTrial(cluster.id, kind.plural, workload.id, change);
  const error = apply.error ?? trial.error;
  return (
    <Dialog
      title={title}
      subtitle={subtitle}
      wide
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          {change ? (
            <Button
              kind="primary"
              disabledBecause={trial.data ? undefined : "The cluster has not tried it."}
              onClick={() => apply.mutate({ change, done })}
            >
              {apply.isPending ? "Under way…" : verb}
            </Button>
          ) : (
            before
          )}
        </>
      }
    >
      {children}
      {error && (
        <Notice tone="err" title="Nothing was changed.">
          {sentence(error)}
        </Notice>
      )}
      {change && trial.isPending && <Skeleton rows={4} what="what would change" />}
      {trial.data && <DiffView lines={trial.data} />}
    </Dialog>
  );
}

/** What a change would do to the lines of an object. */
function useTrial(clusterId: string, type: string, id: string, change: Change | undefined) {
  return useQuery({
    queryKey: ["kind-trial", clusterId, type, id, change?.body],
    queryFn: async ({ client }) => {
      if (!change) return [];
      const before = await client.fetchQuery(kindYamlQuery(clusterId, type, id, false));
      return changedLines(before, await changeKindObject(clusterId, type, id, change, true));
    },
    enabled: change !== undefined,
    retry: false,
    gcTime: 0,
  });
}
