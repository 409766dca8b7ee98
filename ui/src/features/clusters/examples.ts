/** Clusters as the API returns them, for tests. */

import type { Cluster, Condition } from "../../api/types.ts";

export const NOW = new Date("2026-11-21T09:00:00Z");

const HOLDING = [
  "BackingNamespaceCreated",
  "DefaultProjectCreated",
  "SystemProjectCreated",
  "CreatorMadeOwner",
  "Updated",
];
const CONNECTED = ["Pending", "Provisioned", "AgentDeployed", "Connected", "Waiting", "Ready"];

export function condition(type: string, status: string, reason = "", message = ""): Condition {
  return { type, status, reason, message, lastTransitionTime: "2026-11-21T08:39:00Z" };
}

/** An active cluster, with `change` applied. */
export function cluster(change: Partial<Cluster> = {}): Cluster {
  return {
    id: "c-1",
    type: "cluster",
    name: "north",
    state: "active",
    transitioning: "no",
    created: "2026-11-21T08:56:00Z",
    conditions: [...HOLDING, ...CONNECTED].map((type) => condition(type, "True")),
    nodeCount: 3,
    ...change,
  };
}

/** The cluster with some of its conditions replaced. */
export function but(base: Cluster, ...changed: Condition[]): Cluster {
  const types = new Set(changed.map(({ type }) => type));
  const rest = (base.conditions ?? []).filter(({ type }) => !types.has(type));
  return { ...base, conditions: [...rest, ...changed] };
}

/** A cluster whose import command was not run. */
export function waiting(change: Partial<Cluster> = {}): Cluster {
  return cluster({
    state: "pending",
    transitioning: "yes",
    nodeCount: 0,
    conditions: [
      ...HOLDING.map((type) => condition(type, "True")),
      condition("Pending", "Unknown", "AgentNotRegistered", "waiting for the cluster's agent"),
      condition("Connected", "Unknown", "AgentNotRegistered"),
      condition("Waiting", "Unknown", "", "waiting for the cluster's API"),
    ],
    ...change,
  });
}

/** A cluster whose agent disconnected. */
export function lost(change: Partial<Cluster> = {}): Cluster {
  const disconnected = "cluster agent is not connected";
  return but(
    cluster({ state: "unavailable", transitioning: "error", ...change }),
    condition("Connected", "False", "Disconnected", disconnected),
    condition("Ready", "False", "Disconnected", disconnected),
  );
}
