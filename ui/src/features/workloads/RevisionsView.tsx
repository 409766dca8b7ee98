/** What a workload ran before, and the way back to it. */

import { IconArrowBackUp } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { sentence } from "../../api/errors.ts";
import { useKindFeed } from "../../api/freshness.ts";
import { controllerRevisionsQuery, replicaSetsQuery } from "../../api/workloads.ts";
import { point } from "../../lib/time.ts";
import { Button } from "../../ui/Button.tsx";
import { Notice, Skeleton } from "../../ui/Notice.tsx";
import table from "../../ui/Table.module.css";
import { Ago, useNow } from "../../ui/Time.tsx";
import { useCluster } from "../clusters/ClusterPage.tsx";
import { ChangeDialog } from "./ChangeDialog.tsx";
import {
  controllerRevisions,
  deploymentRevisions,
  rolledBack,
  selectorText,
  type WorkloadRevision,
} from "./model.ts";
import type { WorkloadProps } from "./WorkloadActions.tsx";
import styles from "./Workloads.module.css";

const TICK_MS = 10_000;

export function RevisionsView({ kind, workload }: WorkloadProps) {
  const cluster = useCluster();
  const now = useNow(TICK_MS);
  const [chosen, setChosen] = useState<WorkloadRevision>();
  const { error, revisions } = useRevisions({ kind, workload });
  const denial = workload.links.update
    ? undefined
    : `Your roles in ${cluster.name} do not let you change this.`;
  const { name } = workload.metadata;
  if (error) {
    return (
      <Notice tone="err" title="Its revisions could not be read.">
        {sentence(error)}
      </Notice>
    );
  }
  if (!revisions) return <Skeleton rows={3} what={`revisions of ${name}`} />;
  return (
    <>
      <div className={table.frame}>
        <table className={`${table.table} ${styles.table}`}>
          <caption className="hidden">Revisions</caption>
          <thead>
            <tr>
              <th scope="col" className={`${styles.number} ${table.right}`}>
                Revision
              </th>
              <th scope="col">Images</th>
              <th scope="col">Cause</th>
              <th scope="col" className={`${styles.age} ${table.right}`}>
                Made
              </th>
              <th scope="col" className={styles.action}>
                <span className="hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {revisions.map((revision) => {
              const created = point(revision.created);
              return (
                <tr key={revision.number}>
                  <td className={table.right}>{revision.number}</td>
                  <td title={revision.images.join(", ")}>{revision.images.join(", ")}</td>
                  <td className={table.quiet}>{revision.cause ?? "—"}</td>
                  <td className={table.right}>{created ? <Ago at={created} now={now} /> : "—"}</td>
                  <td className={table.right}>
                    {revision.isCurrent ? (
                      <span className="second">Current</span>
                    ) : (
                      <Button
                        small
                        deniedBecause={denial}
                        aria-label={`Roll back to ${revision.number}…`}
                        disabledBecause={
                          workload.spec.paused ? "Its rollouts are paused: resume them." : undefined
                        }
                        onClick={() => setChosen(revision)}
                      >
                        {!denial && <IconArrowBackUp size={16} stroke={1.5} />}
                        Roll back…
                      </Button>
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {chosen && (
        <ChangeDialog
          kind={kind}
          workload={workload}
          title={`Roll ${name} back to revision ${chosen.number}?`}
          subtitle="Its pods are replaced, as its strategy says. What else was changed stays."
          change={rolledBack(chosen)}
          done={`Rolling ${name} back to revision ${chosen.number}`}
          verb="Roll back"
          onClose={() => setChosen(undefined)}
        />
      )}
    </>
  );
}

function useRevisions({ kind, workload }: WorkloadProps): {
  error: Error | null;
  revisions: WorkloadRevision[] | undefined;
} {
  const cluster = useCluster();
  const { uid, namespace = "" } = workload.metadata;
  const selector = selectorText(workload.spec.selector ?? {});
  const ofDeployment = kind.history === "replicasets";
  useKindFeed(cluster.id, `apps.${kind.history}`, workload.metadata.resourceVersion, { namespace });
  const sets = useQuery({
    ...replicaSetsQuery(cluster.id, namespace, selector),
    enabled: ofDeployment,
  });
  const others = useQuery({
    ...controllerRevisionsQuery(cluster.id, namespace, selector),
    enabled: !ofDeployment,
  });
  if (ofDeployment) {
    return { error: sets.error, revisions: sets.data && deploymentRevisions(uid, sets.data) };
  }
  return { error: others.error, revisions: others.data && controllerRevisions(uid, others.data) };
}
