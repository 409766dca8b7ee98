/** Text on nodes for the pages. Pure. */

import type { Condition, Node } from "../../api/types.ts";
import type { Tone } from "../../ui/StateMark.tsx";

/** Conditions of a node that are true if there is a problem. */
const PRESSURES: Record<string, string> = {
  MemoryPressure: "short of memory, evicts pods",
  DiskPressure: "short of disk, evicts pods",
  PIDPressure: "too many processes",
  NetworkUnavailable: "its network is not set up",
};

const find = (node: Node, type: string): Condition | undefined =>
  node.conditions?.find((condition) => condition.type === type);

function pressures(node: Node): Condition[] {
  return (node.conditions ?? []).filter(
    ({ type, status }) => type in PRESSURES && status === "True",
  );
}

/**
 * The current drain of a node; none if the node is schedulable, because the drain is then in the
 * past.
 */
function drain(node: Node): Condition | undefined {
  return node.unschedulable ? find(node, "Drained") : undefined;
}

/** Whether its pods are being evicted. */
export function isDraining(node: Node): boolean {
  return drain(node)?.status === "Unknown";
}

/** A drain that failed: it ended before all pods were evicted, and was not stopped by a user. */
function failedDrain(node: Node): Condition | undefined {
  const ended = drain(node);
  return ended?.status === "False" && ended.reason !== "Stopped" ? ended : undefined;
}

export function nodeTone(node: Node): Tone {
  if (node.state === "removing") return "rem";
  const ready = find(node, "Ready")?.status;
  if (ready === "Unknown") return "off";
  if (ready !== "True") return node.transitioning === "yes" ? "run" : "err";
  if (pressures(node).length > 0 || failedDrain(node)) return "warn";
  if (isDraining(node)) return "run";
  return node.unschedulable ? "done" : "ok";
}

/**
 * `Ready`, `Not ready`, `Ready, memory pressure`, `Cordoned`, `Draining`, `Drained`, `Drain
 * failed`.
 */
export function nodeWord(node: Node): string {
  const ready = find(node, "Ready")?.status;
  if (node.state === "removing") return "Removing";
  if (ready === "Unknown") return "Unknown";
  if (ready !== "True") return "Not ready";
  const [pressure] = pressures(node);
  if (pressure) return `Ready, ${lower(pressure.type)}`;
  if (isDraining(node)) return "Draining";
  if (failedDrain(node)) return "Drain failed";
  if (drain(node)?.status === "True") return "Drained";
  return node.unschedulable ? "Cordoned" : "Ready";
}

/** Why it is not simply ready; nothing if it is. */
export function nodeReason(node: Node): string | undefined {
  const ready = find(node, "Ready");
  if (!ready) return "The kubelet has not reported yet.";
  if (ready.status === "Unknown") {
    return ready.message || "The kubelet stopped reporting: see whether the machine runs.";
  }
  if (ready.status !== "True")
    return ready.message || ready.reason || "The kubelet gives no reason.";
  const [pressure] = pressures(node);
  if (pressure) return pressure.message || PRESSURES[pressure.type];
  const unfinished = isDraining(node) ? drain(node) : failedDrain(node);
  if (unfinished) return unfinished.message;
  if (drain(node)?.status === "True") return "Takes no new pods: it was drained.";
  return node.unschedulable ? "Accepts no new pods: it is cordoned." : undefined;
}

export interface NodeProblem {
  node: Node;
  tone: Tone;
  text: string;
  since: string | undefined;
}

/** Nodes that need attention, worst first. */
export function nodeProblems(nodes: readonly Node[]): NodeProblem[] {
  const order: Tone[] = ["off", "err", "warn"];
  const found = nodes.flatMap((node) => {
    const tone = nodeTone(node);
    if (!order.includes(tone)) return [];
    const cause = tone === "warn" ? (pressures(node)[0]?.type ?? "Drained") : "Ready";
    const since = find(node, cause);
    return [{ node, tone, text: nodeReason(node) ?? "", since: since?.lastTransitionTime }];
  });
  return found.sort((one, other) => order.indexOf(one.tone) - order.indexOf(other.tone));
}

/** Roles as kubectl shows them. */
export function roles(node: Node): string {
  const named = [
    node.controlPlane && "control plane",
    node.etcd && "etcd",
    node.worker && "worker",
  ].filter(Boolean);
  return named.join(", ") || "—";
}

const SEVERITY: Tone[] = ["off", "err", "warn", "rem", "run", "done", "ok", "wait"];

/** Worst first, then by name. */
export function inOrder(nodes: readonly Node[]): Node[] {
  const place = (node: Node) => SEVERITY.indexOf(nodeTone(node));
  const byName = (one: Node, other: Node) =>
    one.name.localeCompare(other.name, "en", { numeric: true });
  return [...nodes].sort((one, other) => place(one) - place(other) || byName(one, other));
}

/** How many nodes have each tone, healthy first. */
export function nodeTally(nodes: readonly Node[]): [Tone, number][] {
  const counts = new Map<Tone, number>();
  for (const node of nodes) counts.set(nodeTone(node), (counts.get(nodeTone(node)) ?? 0) + 1);
  const order: Tone[] = ["ok", "warn", "err", "off", "run", "done", "rem", "wait"];
  return order.flatMap((tone) => {
    const number = counts.get(tone);
    return number ? [[tone, number] as [Tone, number]] : [];
  });
}

export const NODE_TONE_WORDS: Record<Tone, string> = {
  ok: "ready",
  warn: "pressure",
  err: "not ready",
  off: "unknown",
  run: "starting",
  done: "cordoned",
  rem: "going",
  wait: "waiting",
};

function lower(type: string): string {
  return type.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
}
