/** Text and numbers on clusters for the pages. Pure. */

import type { Cluster } from "../../api/types.ts";
import { parse, percent } from "../../lib/quantity.ts";
import { ago, clock, length, moment, point } from "../../lib/time.ts";
import type { Tone } from "../../ui/StateMark.tsx";
import { conditionOf, type Explained, explain, explainAll, isTrue } from "./conditions.ts";

const TONES: Record<string, Tone> = {
  active: "ok",
  pending: "wait",
  waiting: "wait",
  configuring: "run",
  provisioning: "run",
  activating: "run",
  updating: "run",
  upgrading: "run",
  reconciling: "run",
  unavailable: "off",
  removing: "rem",
  error: "err",
  inactive: "done",
};
/** Worst first. */
const SEVERITY: readonly Tone[] = ["off", "err", "warn", "wait", "run", "rem", "ok", "done"];

const tones = new WeakMap<Cluster, Tone>();

/**
 * The tone of the state; its word is that of the API. Computed once for each version of a cluster.
 */
export function toneOf(cluster: Cluster): Tone {
  const known = tones.get(cluster) ?? computedTone(cluster);
  tones.set(cluster, known);
  return known;
}

function computedTone(cluster: Cluster): Tone {
  const tone = TONES[cluster.state ?? ""] ?? "wait";
  if (tone === "rem" || tone === "off") return tone;
  if (cluster.transitioning === "error" || obstacle(cluster)) return "err";
  return tone === "ok" && warnings(cluster).length > 0 ? "warn" : tone;
}

/** Conditions that are broken, not just pending. */
function obstacle(cluster: Cluster): Explained | undefined {
  return problems(cluster).find(({ tone }) => tone === "err");
}

/** `Active`, `Active, 2 warnings`. */
export function stateWord(cluster: Cluster): string {
  const state = cluster.state || "unknown";
  const word = state.charAt(0).toUpperCase() + state.slice(1);
  const number = warnings(cluster).length;
  if (state !== "active" || number === 0) return word;
  return `${word}, ${number} ${number === 1 ? "warning" : "warnings"}`;
}

/** Conditions that are not true although the cluster is active. */
function warnings(cluster: Cluster): Explained[] {
  if (cluster.state !== "active") return [];
  return explainAll(cluster).filter(({ holds, type }) => !holds && !QUIET.has(type));
}

/** Conditions that are false in a healthy cluster. */
const QUIET = new Set(["Reconciling", "Removed"]);

/** The next step from a state. */
export type NextStep = "import" | "conditions" | "force-removal";

export interface Reason {
  text: string;
  next: NextStep | undefined;
  /** The text of the link. */
  label: string;
}

/** Whether a driver makes it, so that it has a provisioning log. */
export function isMadeByDriver({ links }: Cluster): boolean {
  return links?.provisioningLog !== undefined;
}

/** Why a cluster is not simply active, in one sentence, with the next step. */
export function reasonOf(cluster: Cluster, now: Date): Reason | undefined {
  if (toneOf(cluster) === "ok") return undefined;
  if (cluster.state === "removing") return removalReason(cluster);
  if (isMadeByDriver(cluster) && cluster.transitioningMessage) {
    return { text: capital(cluster.transitioningMessage), next: undefined, label: "" };
  }
  if (conditionOf(cluster, "Connected")?.reason === "AgentNotRegistered") {
    const created = point(cluster.created);
    const age = created ? `Created ${ago(created, now)}; ` : "";
    const text = `${age}nobody has run the import command so far.`;
    return { text: capital(text), next: "import", label: "Show the command" };
  }
  const connected = conditionOf(cluster, "Connected");
  const since = point(connected?.lastTransitionTime);
  if (connected?.reason === "Disconnected" && since) {
    const text = `Agent silent since ${moment(since, now)}.`;
    return { text, next: "conditions", label: "What to check" };
  }
  const first = obstacle(cluster) ?? problems(cluster)[0];
  const text = first?.said || first?.meaning || cluster.transitioningMessage || "";
  const trouble = first && first.tone !== "run";
  return {
    text: sentence(text || "Drover is working on it."),
    next: "conditions",
    label: trouble ? "What to check" : "Show progress",
  };
}

function removalReason(cluster: Cluster): Reason {
  const removed = conditionOf(cluster, "Removed");
  const words = removed ? explain(removed) : undefined;
  const text = words?.meaning ?? "Removal has begun.";
  const stuck = removed?.reason === "DownstreamUnreachable";
  return stuck
    ? { text, next: "force-removal", label: "Go on without it…" }
    : { text, next: undefined, label: "" };
}

/** All conditions that are not true, in the order in which they become true. */
export function problems(cluster: Cluster): Explained[] {
  const quiet = (type: string) => QUIET.has(type) && cluster.state !== "removing";
  return explainAll(cluster).filter(({ holds, type }) => !holds && !quiet(type));
}

/** Whether all data on the cluster is outdated, because it is unavailable. */
export function isPast(cluster: Cluster): boolean {
  const tone = toneOf(cluster);
  // A cluster that is removed without its agent is also unavailable.
  return tone === "off" || (tone === "rem" && lastHeard(cluster) instanceof Date);
}

/** What fails, and for how long: `Agent silent for 4 min`. */
export function failureOf(cluster: Cluster, now: Date): string | undefined {
  const first = obstacle(cluster) ?? problems(cluster)[0];
  if (!first) return undefined;
  const since = point(first.since);
  return since ? `${first.title} for ${length(now.getTime() - since.getTime())}` : first.title;
}

/** Since when the cluster is unavailable. */
export function pastSince(cluster: Cluster): Date | undefined {
  if (!isPast(cluster)) return undefined;
  const heard = lastHeard(cluster);
  return heard instanceof Date ? heard : point(problems(cluster)[0]?.since);
}

/**
 * When the agent was last connected: `live`, the time of its disconnection, or nothing if it never
 * was.
 */
export function lastHeard(cluster: Cluster): "live" | Date | undefined {
  if (isTrue(cluster, "Connected")) return "live";
  const connected = conditionOf(cluster, "Connected");
  // A refused agent was never connected.
  const neverJoined = conditionOf(cluster, "Pending")?.status === "Unknown";
  if (neverJoined || connected?.reason === "AgentNotRegistered") return undefined;
  return point(connected?.lastTransitionTime);
}

/** A way to remove a cluster, with the terms of `drover cluster rm` and `detach`. */
export interface RemovalOption {
  way: "remove" | "wait" | "force" | "detach";
  /** The label of the button. */
  word: string;
  meaning: string;
  force: boolean;
  detach: boolean;
}

/**
 * The ways to remove a cluster. The first is the default, unless the cluster is silent: see
 * `isSilent`.
 */
export function removalOptions(cluster: Cluster): RemovalOption[] {
  if (cluster.state === "removing") return [FORCE];
  return isSilent(cluster) ? [WAIT, FORCE, DETACH_NOW] : [REMOVE, DETACH];
}

/** Whether it joined and does not respond now: then the user has to choose what to do. */
export function isSilent(cluster: Cluster): boolean {
  return lastHeard(cluster) instanceof Date;
}

const REMOVE: RemovalOption = {
  way: "remove",
  word: "Remove",
  meaning: "Delete the objects that Drover created in the cluster. Objects of users stay.",
  force: false,
  detach: false,
};
const WAIT: RemovalOption = {
  way: "wait",
  word: "Wait",
  meaning: "Wait up to 5 minutes for the cluster; after that Drover ends as with Force.",
  force: false,
  detach: false,
};
const FORCE: RemovalOption = {
  way: "force",
  word: "Force",
  meaning: "End now; the report lists what stays in the cluster.",
  force: true,
  detach: false,
};
const DETACH: RemovalOption = {
  way: "detach",
  word: "Detach",
  meaning: "Like Remove, but a cluster that Drover created keeps its machines.",
  force: false,
  detach: true,
};
const DETACH_NOW: RemovalOption = {
  ...DETACH,
  meaning: "Like Force, but a cluster that Drover created keeps its machines.",
  force: true,
};

/** What stays in a cluster from which nothing can be deleted, as the report lists it. */
export const LEFTOVERS = [
  "Namespace cattle-system, with the agent, its key and its credentials",
  "ClusterRole drover-cluster-agent",
  "ClusterRoleBinding drover-cluster-agent",
  "The roles and bindings of users, with the label drover.io/owned",
] as const;
/** Deletes them later, in the cluster. */
export const DELETE_LEFTOVERS = "kubectl delete namespace cattle-system";

/** Since when a cluster does not respond, and why. */
export function silence(cluster: Cluster): string {
  const since = lastHeard(cluster);
  const why = conditionOf(cluster, "Connected")?.message || "its agent is not connected";
  return since instanceof Date ? `since ${clock(since)}: ${why}` : why;
}

export interface Usage {
  /** What pods request. */
  taken: number | undefined;
  /** What nodes have for pods. */
  whole: number | undefined;
  percent: number | undefined;
}

/** The requested share of a resource. `name`: `cpu`, `memory` or `pods`. */
export function usage(
  holder: Pick<Cluster, "allocatable" | "requested">,
  name: "cpu" | "memory" | "pods",
): Usage {
  // Resources that no pod requests are absent from the sums.
  const taken = parse(holder.requested?.[name]) ?? (holder.requested ? 0 : undefined);
  const whole = parse(holder.allocatable?.[name]);
  return { taken, whole, percent: percent(taken, whole) };
}

/** The cluster of this name, or of this id. */
export function byRef(clusters: readonly Cluster[], reference: string): Cluster | undefined {
  return (
    clusters.find(({ name }) => name === reference) ?? clusters.find(({ id }) => id === reference)
  );
}

/** Labels of users, as `key: value`; those of Kubernetes and Drover are omitted. */
export function ownLabels(cluster: Cluster): [string, string][] {
  const entries = Object.entries(cluster.labels ?? {});
  return entries.filter(([key]) => !/(^|\.)(cattle|drover|kubernetes|k8s)\.io\//.test(key));
}

/** Whether it is labelled as production, which all dialogs with actions show. */
export function isProduction(cluster: Cluster): boolean {
  return ownLabels(cluster).some(
    ([key, value]) => /^(.*\/)?(env|environment|stage)$/i.test(key) && /^prod/i.test(value),
  );
}

export const SORT_KEYS = ["state", "name", "nodes", "cpu", "memory", "pods"] as const;
export type SortKey = (typeof SORT_KEYS)[number];

/** Much faster than comparing without a collator. */
const NAMES = new Intl.Collator("en", { numeric: true });

/** Sorted clusters; ties are sorted by name. */
export function sorted(clusters: readonly Cluster[], key: SortKey, descending: boolean): Cluster[] {
  const value = (cluster: Cluster): number => {
    if (key === "state") return SEVERITY.indexOf(toneOf(cluster));
    if (key === "name") return 0;
    if (key === "nodes") return cluster.nodeCount ?? -1;
    return usage(cluster, key)[key === "pods" ? "taken" : "percent"] ?? -1;
  };
  const direction = descending ? -1 : 1;
  const keyed = clusters.map((cluster) => ({ cluster, value: value(cluster) }));
  keyed.sort((one, other) => {
    const names = NAMES.compare(one.cluster.name, other.cluster.name);
    const difference = one.value - other.value || (key === "name" ? names : 0);
    return difference * direction || names;
  });
  return keyed.map(({ cluster }) => cluster);
}

/** Whether every word of the text occurs in the name, the id, a label or the version. */
export function matches(cluster: Cluster, text: string): boolean {
  const labels = ownLabels(cluster).flat();
  const version = cluster.version?.gitVersion ?? "";
  const hay = [cluster.name, cluster.id, cluster.provider ?? "", version, ...labels];
  const whole = hay.join(" ").toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => whole.includes(word));
}

/** How many clusters have each tone, worst first. */
export function tally(clusters: readonly Cluster[]): [Tone, number][] {
  const counts = new Map<Tone, number>();
  for (const cluster of clusters) {
    const tone = toneOf(cluster);
    counts.set(tone, (counts.get(tone) ?? 0) + 1);
  }
  return SEVERITY.flatMap((tone) => {
    const number = counts.get(tone);
    return number ? [[tone, number] as [Tone, number]] : [];
  });
}

/** The word for all clusters of a tone. */
export const TONE_WORDS: Record<Tone, string> = {
  off: "Unavailable",
  err: "Error",
  warn: "Warnings",
  wait: "Waiting",
  run: "Updating",
  rem: "Removing",
  ok: "Active",
  done: "Inactive",
};

/** The name of the cluster's Kubernetes distribution or provider. */
export function providerWord(cluster: Cluster): string {
  if (cluster.internal) return "Drover";
  const known: Record<string, string> = {
    eks: "EKS",
    gke: "GKE",
    aks: "AKS",
    rke2: "RKE2",
    rke: "RKE",
    k3s: "k3s",
  };
  const provider = cluster.provider ?? "";
  const origin = isMadeByDriver(cluster) ? cluster.driver || "Made by a driver" : "Imported";
  return known[provider] ?? (provider || origin);
}

function sentence(text: string): string {
  const whole = capital(text.trim());
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
