/**
 * A cluster that another entry manages already: how that is detected, and the commands that solve
 * it. Pure.
 */

import type { Cluster, ImportCheck } from "../../api/types.ts";

/** Reason of the conditions of an entry whose cluster another entry manages. */
export const ALREADY_MANAGED = "AlreadyManaged";

/** Whether the cluster's agent was refused because another entry manages the cluster. */
export function isAlreadyManaged(cluster: Cluster): boolean {
  if (cluster.state === "removing") return false;
  return (cluster.conditions ?? []).some(
    ({ reason, status }) => reason === ALREADY_MANAGED && status !== "True",
  );
}

/** Restores the Deployment of the first agent, which the manifest of the second entry replaced. */
export const RESTORE_AGENT =
  "kubectl -n cattle-system rollout undo deployment/cattle-cluster-agent";

export interface Manager {
  /** The managing entry, as the end of a sentence. */
  words: string;
  /** The name of the entry, if the user may see it. */
  name: string | undefined;
}

/** Which entry manages the cluster, as far as the user may see it. */
export function managerOf(check: ImportCheck | undefined): Manager {
  const [first] = check?.clusters ?? [];
  if (first) return { words: `as ${first.name}`, name: first.name };
  const hidden = (check?.hiddenClusters ?? 0) > 0;
  const words = hidden ? "by an entry that you may not see" : "by another entry";
  return { words, name: undefined };
}

/** Gives the entry of this name a new agent. */
export function adoptCommand(name: string): string {
  return `drover cluster import ${name} --kubeconfig FILE --adopt`;
}

/** Resumes the import of an entry whose cluster is a clone. */
export function asNewCommand(name: string): string {
  return `drover cluster import ${name} --kubeconfig FILE --resume --as-new`;
}
