/**
 * The steps from an import command to an active cluster, derived from the cluster's conditions.
 * Pure.
 */

import type { Cluster, RegistrationToken } from "../../api/types.ts";
import { clock, length, point } from "../../lib/time.ts";
import type { Tone } from "../../ui/StateMark.tsx";
import { conditionOf, explain, isTrue } from "./conditions.ts";
import { isAlreadyManaged } from "./managed.ts";

export interface ImportStep {
  key: string;
  title: string;
  state: "done" | "now" | "wrong" | "later";
  tone: Tone;
  /** Details of its state. */
  detail: string;
  /** Time of its completion or failure. */
  time: string;
  /** Only if it failed. */
  why?: string;
  helps?: string;
}

interface Fact {
  key: string;
  title: string;
  done: boolean;
  detail: string;
  /** The condition with the reason why it is not done, and the time when it was. */
  condition?: string;
  /** Text while it is the current step. */
  waiting: string;
}

/**
 * After this long without a connection, an agent that never connected gets a hint, in milliseconds.
 */
const PATIENCE_MS = 90_000;

/** The steps, in order. The first that is not done is the current one. */
export function checklist(
  cluster: Cluster,
  token: RegistrationToken | undefined,
  now: Date,
): ImportStep[] {
  const active = cluster.state === "active";
  let current = true;
  return facts(cluster, token).map((fact) => {
    const condition = fact.condition ? conditionOf(cluster, fact.condition) : undefined;
    const base = { key: fact.key, title: fact.title };
    if (fact.done || active) {
      const at = point(condition?.lastTransitionTime);
      return { ...base, state: "done", tone: "ok", detail: fact.detail, time: at ? clock(at) : "" };
    }
    if (!current) return { ...base, state: "later", tone: "wait", detail: "", time: "" };
    current = false;
    const trouble = troubleOf(fact, cluster, token, now);
    if (!trouble) {
      // Blue is for steps that complete by themselves; here the user has to run the command.
      const tone = fact.key === "registered" ? "wait" : "run";
      return { ...base, state: "now", tone, detail: fact.waiting, time: "" };
    }
    const at = point(condition?.lastTransitionTime);
    const time = at ? `since ${clock(at)}` : "";
    return { ...base, state: "wrong", time, ...trouble };
  });
}

function facts(cluster: Cluster, token: RegistrationToken | undefined): Fact[] {
  const nodes = cluster.nodeCount ?? 0;
  const version = cluster.version?.gitVersion;
  const projects =
    isTrue(cluster, "DefaultProjectCreated") && isTrue(cluster, "SystemProjectCreated");
  return [
    {
      key: "projects",
      title: "Projects Default and System exist",
      done: projects,
      detail: "Every namespace has a project from the start.",
      condition: "SystemProjectCreated",
      waiting: "Creating them.",
    },
    {
      key: "registered",
      title: "Agent registered",
      done: isTrue(cluster, "Pending"),
      detail: token?.usedAt ? "It proved a key of its own, which is now this cluster's." : "",
      condition: "Pending",
      waiting: "Waiting for somebody to run the command.",
    },
    {
      key: "connected",
      title: "Tunnel open",
      done: isTrue(cluster, "Connected"),
      detail: "From inside the cluster to this server; nothing has to reach in.",
      condition: "Connected",
      waiting: "The agent is opening it.",
    },
    {
      key: "healthy",
      title: "The cluster's API responds",
      done: isTrue(cluster, "Ready"),
      detail: version ? `Kubernetes ${version}` : "",
      condition: "Ready",
      waiting: "Querying it through the tunnel.",
    },
    {
      key: "nodes",
      title: "Nodes are read",
      done: isTrue(cluster, "Ready") && cluster.nodeCount != null,
      detail: nodes === 1 ? "1 node" : `${nodes} nodes`,
      waiting: "Reading nodes and what their pods request.",
    },
    {
      key: "active",
      title: "Cluster is Active",
      done: false,
      detail: "All its conditions are true.",
      waiting: cluster.transitioningMessage || "Waiting for the last conditions.",
    },
  ];
}

interface Trouble {
  tone: Tone;
  detail: string;
  why: string;
  helps: string;
}

function troubleOf(
  fact: Fact,
  cluster: Cluster,
  token: RegistrationToken | undefined,
  now: Date,
): Trouble | undefined {
  if (fact.key === "registered") return notRegistered(cluster, token, now);
  const condition = fact.condition ? conditionOf(cluster, fact.condition) : undefined;
  if (!condition || condition.status === "True") return undefined;
  const words = explain(condition);
  // Unknown usually means not yet.
  if (condition.status === "Unknown" && words.tone !== "err") return undefined;
  return { tone: words.tone, detail: words.said, why: words.meaning, helps: words.next };
}

/**
 * The problem of an agent that has not connected: the command was not run, or the agent cannot
 * connect.
 */
function notRegistered(
  cluster: Cluster,
  token: RegistrationToken | undefined,
  now: Date,
): Trouble | undefined {
  const expires = point(token?.expiresAt);
  if (expires && expires <= now) {
    return {
      tone: "err",
      detail: `The command ended at ${clock(expires)}.`,
      why: "a command lets an agent in for a limited time only, so that a lost one does no harm.",
      helps: "make a new one above and run that.",
    };
  }
  // The server reports the reason if it knows it.
  const connected = conditionOf(cluster, "Connected");
  const words = connected && explain(connected);
  // A notice explains what helps.
  if (isAlreadyManaged(cluster)) {
    return {
      tone: "err",
      detail: "It was refused: the cluster is managed already.",
      why: "",
      helps: "",
    };
  }
  if (words?.tone === "err") {
    return { tone: "err", detail: words.said, why: words.meaning, helps: words.next };
  }
  const created = point(cluster.created);
  const age = created ? now.getTime() - created.getTime() : 0;
  if (age < PATIENCE_MS) return undefined;
  return {
    tone: "wait",
    detail: `No agent has registered for ${length(age)}.`,
    why: "the command was not run yet, or the agent does not start, or it does not reach this server.",
    helps: "if it was run, check the agent in the cluster:",
  };
}

/** The command to run if an agent does not connect. */
export const INSPECT_AGENT = "kubectl -n cattle-system get pods,events";

/** `4 of 6 done, one needs you`. */
export function summary(steps: readonly ImportStep[]): string {
  const done = steps.filter(({ state }) => state === "done").length;
  if (done === steps.length) return `All ${done} done`;
  const wrong = steps.some(({ state }) => state === "wrong");
  return `${done} of ${steps.length} done${wrong ? ", one needs you" : ""}`;
}
