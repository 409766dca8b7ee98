/** The kubectl shells that are open in this window. They stay open while pages change. */

import { useSyncExternalStore } from "react";
import { socketUrl } from "../../api/client.ts";
import type { Cluster } from "../../api/types.ts";

/** A shell in a cluster, open or ended. */
export interface KubectlShell {
  /** Unique in this window. */
  id: number;
  clusterId: string;
  clusterName: string;
}

export interface Shells {
  all: readonly KubectlShell[];
  /** The one that is shown. */
  shown: number | undefined;
  isOpen: boolean;
}

const listeners = new Set<() => void>();
let shells: Shells = { all: [], shown: undefined, isOpen: false };
let lastId = 0;

function change(next: Partial<Shells>): void {
  shells = { ...shells, ...next };
  for (const listener of listeners) listener();
}

export function useShells(): Shells {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, currentShells);
}

export function currentShells(): Shells {
  return shells;
}

/** Opens another shell. */
export function addShell({ id: clusterId, name: clusterName }: Cluster): void {
  lastId += 1;
  const added = { id: lastId, clusterId, clusterName };
  change({ all: [...shells.all, added], shown: lastId, isOpen: true });
}

/** Shows a shell of the cluster, a new one if there is none. */
export function showShell(cluster: Cluster): void {
  const found = shells.all.filter(({ clusterId }) => clusterId === cluster.id).at(-1);
  if (found) selectShell(found.id);
  else addShell(cluster);
}

export function selectShell(id: number): void {
  change({ shown: id, isOpen: true });
}

/** Ends a shell. The drawer closes with the last one. */
export function closeShell(id: number): void {
  const at = shells.all.findIndex((shell) => shell.id === id);
  const all = shells.all.filter((shell) => shell.id !== id);
  const shown = shells.shown === id ? (all[at] ?? all[at - 1])?.id : shells.shown;
  change({ all, shown, isOpen: shells.isOpen && all.length > 0 });
}

/** Hides the drawer; the shells stay open. */
export function hideShells(): void {
  change({ isOpen: false });
}

/** Ends all shells, at the end of a login. */
export function closeShells(): void {
  change({ all: [], shown: undefined, isOpen: false });
}

/** Why there is no shell in the cluster; nothing if there can be one. */
export function shellObstacle(cluster: Cluster): string | undefined {
  if (cluster.internal) return "The management API has no pods: use its kubeconfig";
  if (!cluster.links?.shell) return "Shells are switched off by the setting kubectl-shell";
  if (cluster.state !== "active") return "The cluster must be active: a shell is a pod in it";
  return undefined;
}

/** The socket of a new shell. */
export function shellUrl(clusterId: string): string {
  return socketUrl(`/v3/clusters/${encodeURIComponent(clusterId)}?shell=true`);
}
