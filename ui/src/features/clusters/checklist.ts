/** The steps from an import command to an active cluster, as the cluster's own conditions tell them. Pure. */

import type { Cluster, RegistrationToken } from "../../api/types.ts";
import { clock, length, point } from "../../lib/time.ts";
import type { Tone } from "../../ui/StateMark.tsx";
import { conditionOf, explain, isTrue } from "./conditions.ts";
import { isAlreadyManaged } from "./managed.ts";

export interface Step {
  key: string;
  title: string;
  state: "done" | "now" | "wrong" | "later";
  tone: Tone;
  /** What is known of it. */
  detail: string;
  /** At the right end: when. */
  time: string;
  /** Only when it is wrong. */
  why?: string;
  helps?: string;
}

interface Fact {
  key: string;
  title: string;
  done: boolean;
  detail: string;
  /** The condition that says why it is not done, and when it was. */
  condition?: string;
  /** What to say while it is the current step. */
  waiting: string;
}

/** How often the agent of a cluster that never called in is worth a hint, in milliseconds. */
const PATIENCE_MS = 90_000;

/** The steps, in order. The first that is not done is the current one. */
export function checklist(
  cluster: Cluster,
  token: RegistrationToken | undefined,
  now: Date,
): Step[] {
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
      // Blue is for what comes by itself; here somebody has to run the command.
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
      waiting: "Making them.",
    },
    {
      key: "registered",
      title: "Agent called in",
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
      title: "The cluster's API answers",
      done: isTrue(cluster, "Ready"),
      detail: version ? `Kubernetes ${version}` : "",
      condition: "Ready",
      waiting: "Asking it through the tunnel.",
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
      detail: "Everything that is wanted of it is true.",
      waiting: cluster.transitioningMessage || "The last conditions are coming true.",
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
  // Unknown is mostly just not yet.
  if (condition.status === "Unknown" && words.tone !== "err") return undefined;
  return { tone: words.tone, detail: words.said, why: words.meaning, helps: words.next };
}

/** The agent has not called in: because nobody ran the command, or because it cannot. */
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
  // The server says why, when it knows.
  const connected = conditionOf(cluster, "Connected");
  const words = connected && explain(connected);
  // Then a notice says what helps.
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
    detail: `Nobody has called in for ${length(age)}.`,
    why: "the command was not run yet, or the agent does not start, or it does not reach this server.",
    helps: "if it was run, look at the agent in the cluster:",
  };
}

/** What to run when an agent does not call in. */
export const LOOK_AT_AGENT = "kubectl -n cattle-system get pods,events";

/** `4 of 6 done, one needs you`. */
export function summary(steps: readonly Step[]): string {
  const done = steps.filter(({ state }) => state === "done").length;
  if (done === steps.length) return `All ${done} done`;
  const wrong = steps.some(({ state }) => state === "wrong");
  return `${done} of ${steps.length} done${wrong ? ", one needs you" : ""}`;
}
