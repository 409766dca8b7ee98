/**
 * The table of all cluster conditions: what each means, and what helps if it is not true.
 *
 * An unknown reason is shown with the server's message, never omitted.
 */

import type { Cluster, Condition } from "../../api/types.ts";
import type { Tone } from "../../ui/StateMark.tsx";

interface Words {
  /** What is waiting or broken. */
  meaning: string;
  /** What the user can do about it. Empty: nothing, it resolves by itself. */
  next: string;
}

interface ConditionEntry extends Words {
  /** Title if it is true. */
  title: string;
  /** Title if it is not true: the opposite of `title`. */
  failing: string;
  /** Drover knows it without the cluster: it stays valid while the cluster is unavailable. */
  known?: boolean;
  /** Meaning if it is true. */
  holds: string;
  tone: Tone;
  /** Texts for specific reasons, in place of the general ones. */
  reasons?: Record<string, Partial<Words> & { failing?: string; tone?: Tone }>;
}

const BY_ITSELF = "Nothing to do: it resolves by itself within seconds.";

/**
 * Reasons from an agent or the tunnel endpoint why the cluster is unavailable; the server's message
 * has the details.
 */
const OBSTACLES: ConditionEntry["reasons"] = {
  AgentRefused: {
    failing: "Agent refused",
    tone: "err",
    meaning: "An agent connected and was refused.",
    next: "Follow the server's message; if in doubt, create a new import command and run it.",
  },
  AlreadyManaged: {
    failing: "Managed already",
    tone: "err",
    meaning: "Another entry of Drover manages this cluster already; the agent was refused.",
    next: "Choose one of the ways above.",
  },
  AgentHasNoCredential: {
    failing: "Agent without access",
    tone: "err",
    meaning: "The agent is connected, but has no access to its own cluster's API.",
    next: "Apply the import manifest again: it contains the rights of the agent.",
  },
};

/** In the order in which they become true. */
const TABLE: Record<string, ConditionEntry> = {
  BackingNamespaceCreated: {
    title: "Namespace in Drover",
    failing: "No namespace in Drover yet",
    known: true,
    holds: "Drover stores the objects of this cluster in a namespace of its own.",
    meaning: "The namespace for the objects of this cluster does not exist yet.",
    next: BY_ITSELF,
    tone: "run",
    reasons: {
      Terminating: {
        meaning: "An older cluster of the same id is still being cleaned up.",
        next: "Wait until that has ended. If it lasts, check for namespaces that are terminating.",
      },
    },
  },
  Pending: {
    title: "Agent registered",
    failing: "No agent so far",
    known: true,
    holds: "The cluster's agent has registered its key here.",
    meaning: "No agent of this cluster has registered so far.",
    next: "Run the import command against the cluster.",
    tone: "wait",
  },
  Provisioned: {
    title: "Cluster exists",
    failing: "Cluster not built yet",
    known: true,
    holds: "The cluster exists; nothing has to be built.",
    meaning: "The cluster is still being created.",
    next: "Wait for its provisioner.",
    tone: "run",
  },
  AgentDeployed: {
    title: "Agent runs",
    failing: "Agent has not run",
    holds: "The agent has run in the cluster.",
    meaning: "The agent has not run in the cluster so far.",
    next: "Check its pods: kubectl -n cattle-system get pods",
    tone: "wait",
  },
  Connected: {
    title: "Tunnel open",
    failing: "Tunnel closed",
    holds: "The agent's tunnel to this server is open.",
    meaning: "The agent's tunnel is not open.",
    next: "Check the agent: kubectl -n cattle-system logs deploy/cattle-cluster-agent",
    tone: "wait",
    reasons: {
      ...OBSTACLES,
      AgentNotRegistered: {
        failing: "No agent so far",
        meaning: "No agent of this cluster has registered so far.",
        next: "Run the import command against the cluster.",
      },
      Disconnected: {
        failing: "Agent silent",
        tone: "off",
        meaning: "The agent is not connected. Figures are from when it was.",
        next: "Check that the cluster runs and reaches this server, then check the agent: kubectl -n cattle-system logs deploy/cattle-cluster-agent",
      },
    },
  },
  Waiting: {
    title: "API seen",
    failing: "API not seen yet",
    holds: "The cluster's API has responded through the tunnel.",
    meaning: "The cluster's API has not responded yet.",
    next: "It is queried as soon as the tunnel is open.",
    tone: "wait",
    reasons: OBSTACLES,
  },
  Ready: {
    title: "API healthy",
    failing: "API not healthy",
    holds: "The cluster's API reports that it is healthy.",
    meaning: "The cluster's API does not report that it is healthy.",
    next: "Check its health endpoint: kubectl get --raw '/readyz?verbose'",
    tone: "err",
    reasons: {
      ...OBSTACLES,
      Disconnected: {
        failing: "API unavailable",
        tone: "off",
        meaning: "The API cannot be queried while the agent is not connected.",
        next: "Restore the agent first.",
      },
    },
  },
  DefaultProjectCreated: {
    title: "Project Default",
    failing: "No project Default yet",
    known: true,
    holds: "Unassigned namespaces have a project.",
    meaning: "The project for unassigned namespaces does not exist yet.",
    next: BY_ITSELF,
    tone: "run",
  },
  SystemProjectCreated: {
    title: "Project System",
    failing: "No project System yet",
    known: true,
    holds: "The cluster's own namespaces have a project.",
    meaning: "The project for the cluster's own namespaces does not exist yet.",
    next: BY_ITSELF,
    tone: "run",
  },
  CreatorMadeOwner: {
    title: "Owner",
    failing: "No owner yet",
    known: true,
    holds: "The creator of the cluster owns it.",
    meaning: "The creator of the cluster does not own it yet.",
    next: BY_ITSELF,
    tone: "run",
  },
  Updated: {
    title: "Up to date",
    failing: "Not up to date",
    holds: "The settings of the cluster are applied.",
    meaning: "A change of the cluster's settings is still being applied.",
    next: BY_ITSELF,
    tone: "run",
  },
  Effective: {
    title: "Settings take effect",
    failing: "Settings without effect",
    known: true,
    holds: "All settings of the cluster take effect.",
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
  RolesApplied: {
    title: "Roles applied",
    failing: "Roles not applied",
    holds: "The roles of Drover that are in use are in the cluster.",
    meaning: "The cluster rejects a role of Drover, or cannot be written. Members may lack rights.",
    next: "See what the cluster rejects: an admission webhook or policy, or the rights of the agent.",
    tone: "err",
  },
  NodesSynced: {
    title: "Nodes current",
    failing: "Nodes not current",
    holds: "Nodes and capacity are those of the cluster.",
    meaning: "Nodes cannot be read from the cluster. What is shown is from before.",
    next: "Apply the import manifest again: it restores the rights of the agent.",
    tone: "err",
  },
  AgentObjectsOwned: {
    title: "Agent removable",
    failing: "Agent not removable",
    holds: "Deleting the agent's namespace deletes all that Drover has in the cluster.",
    meaning:
      "The agent's cluster-wide rights would stay in the cluster when its namespace is deleted.",
    next: "See what the cluster rejects: an admission webhook or policy, or the rights of the agent.",
    tone: "err",
  },
  NamespaceProjectsRoleApplied: {
    title: "Role for namespaces",
    failing: "No role for namespaces",
    holds: "Drover may write the projects of namespaces in the cluster.",
    meaning: "The cluster rejects the role with which Drover writes the projects of namespaces.",
    next: "See what the cluster rejects: an admission webhook or policy, or the rights of the agent.",
    tone: "err",
  },
  ProjectRolesApplied: {
    title: "Roles in projects",
    failing: "Roles in projects not applied",
    holds: "The roles of projects are bound in their namespaces.",
    meaning:
      "The cluster rejects a role or binding for members of projects. They may lack rights, or have those of before.",
    next: "See what the cluster rejects: an admission webhook or policy, or the rights of the agent.",
    tone: "err",
  },
  PodSecurityApplied: {
    title: "Pod Security levels",
    failing: "Pod Security levels not applied",
    holds: "Namespaces have the Pod Security labels of their template, if they have one.",
    meaning:
      "A template does not exist, or the cluster rejects labels of namespaces or does not enforce them.",
    next: "Follow the server's message: name another template, update the cluster, or see what rejects the labels.",
    tone: "err",
  },
  ProjectIsolationApplied: {
    title: "Isolation of projects",
    failing: "Isolation of projects not applied",
    holds: "The namespaces of projects are closed to those of others, if the cluster wants that.",
    meaning:
      "The cluster rejects a network policy for namespaces of projects. They may be open, or as they were before.",
    next: "See what the cluster rejects: an admission webhook or policy, or the rights of the agent.",
    tone: "err",
  },
  ProjectQuotasApplied: {
    title: "Quotas of projects",
    failing: "Quotas of projects not applied",
    holds: "The namespaces of projects have their part of the project's quota, and its limits.",
    meaning:
      "The cluster rejects a quota or limits for namespaces of projects. Namespaces may have those of before, or none.",
    next: "See what the cluster rejects: an admission webhook or policy, or the rights of the agent.",
    tone: "err",
  },
  ProjectSecretsRoleApplied: {
    title: "Role for secrets",
    failing: "No role for secrets",
    holds: "Drover may copy the secrets of projects into the cluster.",
    meaning: "The cluster rejects the role with which Drover copies the secrets of projects.",
    next: "See what the cluster rejects: an admission webhook or policy, or the rights of the agent.",
    tone: "err",
  },
  Removed: {
    title: "Removal",
    failing: "Being removed",
    known: true,
    holds: "The objects of the cluster are deleted.",
    meaning: "The cluster is being removed.",
    next: "",
    tone: "rem",
    reasons: {
      DownstreamGoing: { meaning: "Drover's objects are being deleted in the cluster." },
      Cleanup: { meaning: "Drover's own objects for the cluster are being deleted." },
      DownstreamUnreachable: {
        tone: "off",
        meaning:
          "The cluster does not respond, so the agent and its rights cannot be deleted in it now.",
        next: "Restore the agent, or continue without it: then these stay in the cluster.",
      },
    },
  },
};

const ORDER = Object.keys(TABLE);

export interface Explained {
  type: string;
  /** The title: what fails, if the condition is not true. */
  title: string;
  tone: Tone;
  holds: boolean;
  /** Only the cluster can report whether it is still true. */
  observed: boolean;
  /** The meaning, in one sentence. */
  meaning: string;
  /** What helps; empty if nothing has to be done. */
  next: string;
  /** The server's message. */
  said: string;
  reason: string;
  since: string | undefined;
}

/** Explains a condition. */
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
  // Unknown reasons have the general texts, but a plain “False” is a failure, not a wait.
  const failed = status === "False" && !special && entry.tone === "wait";
  return {
    ...base,
    title: special?.failing ?? entry.failing,
    tone: special?.tone ?? (failed ? "err" : entry.tone),
    meaning: special?.meaning ?? entry.meaning,
    next: special?.next ?? entry.next,
  };
}

/** Explains all conditions of a cluster, in the order in which they become true. */
export function explainAll(cluster: Cluster): Explained[] {
  const position = ({ type }: Condition) => (type in TABLE ? ORDER.indexOf(type) : ORDER.length);
  const conditions = [...(cluster.conditions ?? [])];
  conditions.sort((one, other) => position(one) - position(other));
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
