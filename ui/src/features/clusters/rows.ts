/**
 * The lines of the list of clusters, in order: heads of groups, clusters, and reasons of those that
 * are not simply active. Pure.
 */

import type { Cluster } from "../../api/types.ts";
import { ownLabels, type Reason, reasonOf, toneOf } from "./model.ts";

/**
 * Maximum number of waiting clusters that are shown by default; more would push active ones out of
 * sight.
 */
export const WAITING_SHOWN_MAX = 3;

export type TableRow = { key: string; group: string } & (
  | { kind: "group"; title: string; size: number; fold?: "open" | "closed" }
  | { kind: "cluster"; cluster: Cluster; explained: boolean }
  | { kind: "reason"; cluster: Cluster; reason: Reason }
);

interface TableRowsOptions {
  /** In groups by the values of this label. */
  label?: string | undefined;
  /** In groups: needs attention, waiting, pinned, all others. */
  grouped: boolean;
  pins: readonly string[];
  /** Waiting clusters are shown regardless of their number. */
  waitingShown: boolean;
  now: Date;
}

export function tableRows(clusters: readonly Cluster[], options: TableRowsOptions): TableRow[] {
  const { label, grouped, pins, waitingShown, now } = options;
  if (label) {
    return byLabel(clusters, label).flatMap(([title, members]): TableRow[] => [
      { key: `group ${title}`, group: title, kind: "group", title, size: members.length },
      ...members.flatMap((cluster) => clusterRows(title, cluster, now)),
    ]);
  }
  if (!grouped) return clusters.flatMap((cluster) => clusterRows("", cluster, now));
  return inGroups(clusters, pins).flatMap(([title, members]) => {
    const folds = title === WAITING && members.length > WAITING_SHOWN_MAX;
    const fold = waitingShown ? "open" : "closed";
    const head = { key: `group ${title}`, group: title, title, size: members.length };
    const rows: TableRow[] = [{ ...head, kind: "group", ...(folds && { fold }) }];
    if (folds && !waitingShown) return rows;
    return rows.concat(members.flatMap((cluster) => clusterRows(title, cluster, now)));
  });
}

function clusterRows(group: string, cluster: Cluster, now: Date): TableRow[] {
  const reason = reasonOf(cluster, now);
  const { id } = cluster;
  const row: TableRow = { key: id, group, kind: "cluster", cluster, explained: !!reason };
  if (!reason) return [row];
  return [row, { key: `${id} reason`, group, kind: "reason", cluster, reason }];
}

const WAITING = "Waiting";

function inGroups(clusters: readonly Cluster[], pins: readonly string[]) {
  const isPinned = ({ id }: Cluster) => pins.includes(id);
  const healthy = clusters.filter((cluster) => toneOf(cluster) === "ok");
  const waiting = clusters.filter((cluster) => toneOf(cluster) === "wait");
  const attention = clusters.filter(
    (cluster) => toneOf(cluster) !== "ok" && toneOf(cluster) !== "wait",
  );
  const pinned = healthy.filter(isPinned);
  const others = healthy.filter((cluster) => !isPinned(cluster));
  const isAll = others.length === clusters.length;
  const groups: [string, Cluster[]][] = [
    ["Needs attention", attention],
    [WAITING, waiting],
    ["Pinned", pinned],
    [isAll ? "All" : "All others", others],
  ];
  return groups.filter(([, members]) => members.length > 0);
}

/** In the order of the values; clusters without the label come last. */
function byLabel(clusters: readonly Cluster[], label: string): [string, Cluster[]][] {
  const groups = new Map<string, Cluster[]>();
  const others: Cluster[] = [];
  for (const cluster of clusters) {
    const value = ownLabels(cluster).find(([key]) => key === label)?.[1];
    if (value === undefined) others.push(cluster);
    else groups.set(value, [...(groups.get(value) ?? []), cluster]);
  }
  const sorted = [...groups].sort(([one], [other]) => one.localeCompare(other));
  const titled = sorted.map(([value, members]): [string, Cluster[]] => [
    `${label}: ${value || "empty"}`,
    members,
  ]);
  return others.length > 0 ? [...titled, [`Without ${label}`, others]] : titled;
}

/** The labels that clusters can be grouped by. */
export function groupLabels(clusters: readonly Cluster[]): string[] {
  const keys = clusters.flatMap((cluster) => ownLabels(cluster).map(([key]) => key));
  return [...new Set(keys)].sort();
}
