/**
 * What each condition of a cluster means, and what helps when it does not hold: the one table of it.
 *
 * A reason that the table does not know is shown with the server's own words, never left out.
 */

import type { Cluster, Condition } from "../../api/types.ts";
import type { Tone } from "../../ui/StateMark.tsx";

interface Words {
  /** What stands still or is broken. */
  meaning: string;
  /** What a person can do about it. Empty: nothing, it comes by itself. */
  next: string;
}

interface Entry extends Words {
  /** What is so when it holds. */
  title: string;
  /** What is so when it does not: the opposite of the title. */
  failing: string;
  /** Drover knows it without the cluster: it stays right while the cluster cannot be reached. */
  known?: boolean;
  /** What it means when it holds. */
  holds: string;
  tone: Tone;
  /** Words for particular reasons, instead of the general ones. */
  reasons?: Record<string, Partial<Words> & { failing?: string; tone?: Tone }>;
}

const BY_ITSELF = "Nothing to do: it comes by itself within seconds.";

/** What an agent or the tunnel's door said why the cluster cannot be reached; the server's words say more. */
const OBSTACLES: Entry["reasons"] = {
  AgentRefused: {
    failing: "Agent refused",
    tone: "err",
    meaning: "An agent called in and was not let in.",
    next: "Do what the server says of it; if in doubt, make a new import command and run that.",
  },
  AlreadyManaged: {
    failing: "Managed already",
    tone: "err",
    meaning: "Another entry of Drover manages this cluster already; the agent was not let in.",
    next: "Choose one of the ways above.",
  },
  AgentHasNoCredential: {
    failing: "Agent without access",
    tone: "err",
    meaning: "The agent is connected, but has no access to its own cluster's API.",
    next: "Apply the import manifest again: it holds the rights of the agent.",
  },
};

/** In the order in which they come true. */
const TABLE: Record<string, Entry> = {
  BackingNamespaceCreated: {
    title: "Place in Drover",
    failing: "No place in Drover yet",
    known: true,
    holds: "Drover keeps what belongs to this cluster in a namespace of its own.",
    meaning: "The namespace for what belongs to this cluster is not there yet.",
    next: BY_ITSELF,
    tone: "run",
    reasons: {
      Terminating: {
        meaning: "An older cluster of the same id is still being cleaned up.",
        next: "Wait until that has ended. If it lasts, look at namespaces that are terminating.",
      },
    },
  },
  Pending: {
    title: "Agent called in",
    failing: "No agent so far",
    known: true,
    holds: "The cluster's agent has registered its key here.",
    meaning: "No agent of this cluster has called in so far.",
    next: "Run the import command against the cluster.",
    tone: "wait",
  },
  Provisioned: {
    title: "Cluster exists",
    failing: "Cluster not built yet",
    known: true,
    holds: "The cluster is there; nothing has to be built.",
    meaning: "The cluster is still being made.",
    next: "Wait for what makes it.",
    tone: "run",
  },
  AgentDeployed: {
    title: "Agent runs",
    failing: "Agent has not run",
    holds: "The agent has run in the cluster.",
    meaning: "The agent has not run in the cluster so far.",
    next: "Look at its pods: kubectl -n cattle-system get pods",
    tone: "wait",
  },
  Connected: {
    title: "Tunnel open",
    failing: "Tunnel closed",
    holds: "The agent's tunnel to this server is open.",
    meaning: "The agent's tunnel is not open.",
    next: "Look at the agent: kubectl -n cattle-system logs deploy/cattle-cluster-agent",
    tone: "wait",
    reasons: {
      ...OBSTACLES,
      AgentNotRegistered: {
        failing: "No agent so far",
        meaning: "No agent of this cluster has called in so far.",
        next: "Run the import command against the cluster.",
      },
      Disconnected: {
        failing: "Agent silent",
        tone: "off",
        meaning: "The agent is not connected. Figures are from when it was.",
        next: "See that the cluster runs and reaches this server, then look at the agent: kubectl -n cattle-system logs deploy/cattle-cluster-agent",
      },
    },
  },
  Waiting: {
    title: "API seen",
    failing: "API not seen yet",
    holds: "The cluster's API has answered through the tunnel.",
    meaning: "The cluster's API has not answered yet.",
    next: "It is asked as soon as the tunnel is open.",
    tone: "wait",
    reasons: OBSTACLES,
  },
  Ready: {
    title: "API healthy",
    failing: "API not healthy",
    holds: "The cluster's API says that it is well.",
    meaning: "The cluster's API does not say that it is well.",
    next: "Ask it what is wrong: kubectl get --raw '/readyz?verbose'",
    tone: "err",
    reasons: {
      ...OBSTACLES,
      Disconnected: {
        failing: "API out of reach",
        tone: "off",
        meaning: "The API cannot be asked while the agent is not connected.",
        next: "Bring the agent back first.",
      },
    },
  },
  DefaultProjectCreated: {
    title: "Project Default",
    failing: "No project Default yet",
    known: true,
    holds: "Namespaces that nobody assigned have a project.",
    meaning: "The project for unassigned namespaces is not there yet.",
    next: BY_ITSELF,
    tone: "run",
  },
  SystemProjectCreated: {
    title: "Project System",
    failing: "No project System yet",
    known: true,
    holds: "The cluster's own namespaces have a project.",
    meaning: "The project for the cluster's own namespaces is not there yet.",
    next: BY_ITSELF,
    tone: "run",
  },
  CreatorMadeOwner: {
    title: "Owner",
    failing: "No owner yet",
    known: true,
    holds: "Whoever made the cluster owns it.",
    meaning: "Whoever made the cluster does not own it yet.",
    next: BY_ITSELF,
    tone: "run",
  },
  Updated: {
    title: "Up to date",
    failing: "Not up to date",
    holds: "What the settings of the cluster ask for has been done.",
    meaning: "A change of the cluster's settings is still being carried out.",
    next: BY_ITSELF,
    tone: "run",
  },
  Effective: {
    title: "Settings take effect",
    failing: "Settings without effect",
    known: true,
    holds: "Everything that is asked of the cluster is acted on.",
    meaning: "Some settings of the cluster are stored, but this version does not act on them.",
    next: "Do not rely on these settings.",
    tone: "warn",
  },
  NoDiskPressure: {
    title: "Room on disks",
    failing: "Short of disk",
    holds: "No node is short of disk.",
    meaning: "A node is short of disk and evicts pods.",
    next: "Free space on the nodes named in the list of nodes.",
    tone: "warn",
  },
  NoMemoryPressure: {
    title: "Room in memory",
    failing: "Short of memory",
    holds: "No node is short of memory.",
    meaning: "A node is short of memory and evicts pods.",
    next: "Move work off the nodes named in the list of nodes, or add some.",
    tone: "warn",
  },
  Removed: {
    title: "Removal",
    failing: "Being removed",
    known: true,
    holds: "What belonged to the cluster is gone.",
    meaning: "The cluster is being removed.",
    next: "",
    tone: "rem",
    reasons: {
      DownstreamGoing: { meaning: "Drover's objects are being deleted in the cluster." },
      Cleanup: { meaning: "What Drover keeps of the cluster is being deleted." },
      DownstreamUnreachable: {
        tone: "off",
        meaning:
          "The cluster does not respond, so the agent and its rights cannot be deleted in it now.",
        next: "Bring the agent back, or go on without it: then these stay in the cluster.",
      },
    },
  },
};

const ORDER = Object.keys(TABLE);

export interface Explained {
  type: string;
  /** What is so: when the condition does not hold, what fails. */
  title: string;
  tone: Tone;
  holds: boolean;
  /** Only the cluster can say whether it still is so. */
  observed: boolean;
  /** A sentence on what is so. */
  meaning: string;
  /** What helps; empty when nothing has to be done. */
  next: string;
  /** The server's own words, if they say more. */
  said: string;
  reason: string;
  since: string | undefined;
}

/** A condition in words. */
export function explain(condition: Condition): Explained {
  const { type, status, reason = "", message = "" } = condition;
  const entry = TABLE[type];
  const special = entry?.reasons?.[reason];
  const holds = status === "True";
  const observed = !entry?.known;
  const since = condition.lastTransitionTime;
  const base = { type, holds, observed, reason, said: message, since };
  if (!entry) {
    const title = holds ? spaced(type) : `${spaced(type)} does not hold`;
    const meaning = holds ? "Holds." : "Does not hold.";
    const tone = holds ? "ok" : status === "False" ? "err" : "wait";
    return { ...base, title, tone, meaning, next: "" };
  }
  if (holds) return { ...base, title: entry.title, tone: "ok", meaning: entry.holds, next: "" };
  // Unknown reasons keep the general words, but a plain “False” is a failure, not a wait.
  const failed = status === "False" && !special && entry.tone === "wait";
  return {
    ...base,
    title: special?.failing ?? entry.failing,
    tone: special?.tone ?? (failed ? "err" : entry.tone),
    meaning: special?.meaning ?? entry.meaning,
    next: special?.next ?? entry.next,
  };
}

/** All conditions of a cluster in words, in the order in which they come true. */
export function explainAll(cluster: Cluster): Explained[] {
  const place = ({ type }: Condition) => (type in TABLE ? ORDER.indexOf(type) : ORDER.length);
  const conditions = [...(cluster.conditions ?? [])];
  conditions.sort((one, other) => place(one) - place(other));
  return conditions.map(explain);
}

export function conditionOf(cluster: Cluster, type: string): Condition | undefined {
  return cluster.conditions?.find((condition) => condition.type === type);
}

export function isTrue(cluster: Cluster, type: string): boolean {
  return conditionOf(cluster, type)?.status === "True";
}

/** `EtcdBackedUp` as `Etcd backed up`. */
function spaced(type: string): string {
  const words = type.replace(/([a-z0-9])([A-Z])/g, "$1 $2").split(" ");
  return words.map((word, index) => (index > 0 ? word.toLowerCase() : word)).join(" ");
}
