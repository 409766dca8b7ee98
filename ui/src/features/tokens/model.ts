/** What the page of tokens shows. Pure. */

import type { ApiToken } from "../../api/tokens.ts";
import type { Cluster } from "../../api/types.ts";
import type { Tone } from "../../ui/StateMark.tsx";

const DAY_MS = 86_400_000;

/** Lifetimes that a new token can get. */
export const LIFETIMES: readonly { text: string; milliseconds: number }[] = [
  { text: "1 day", milliseconds: DAY_MS },
  { text: "30 days", milliseconds: 30 * DAY_MS },
  { text: "90 days", milliseconds: 90 * DAY_MS },
  { text: "1 year", milliseconds: 365 * DAY_MS },
  { text: "Never expires", milliseconds: 0 },
];

export function tokenTone({ expired }: ApiToken): Tone {
  return expired ? "done" : "ok";
}

export function tokenWord({ expired, current }: ApiToken): string {
  if (expired) return "Expired";
  return current ? "This browser" : "Valid";
}

/** What a token is for. */
export function scopeText(
  { clusterId, projectId }: ApiToken,
  clusters: readonly Cluster[],
): string {
  if (!clusterId) return "everything you may do";
  const cluster = clusters.find(({ id }) => id === clusterId)?.name ?? clusterId;
  return projectId ? `project ${projectId.split(":").at(-1)} of ${cluster}` : `cluster ${cluster}`;
}

/** Those of this browser first, then the newest. */
export function inOrder(tokens: readonly ApiToken[]): ApiToken[] {
  return [...tokens].sort(
    (one, other) =>
      Number(other.current ?? false) - Number(one.current ?? false) ||
      (other.created ?? "").localeCompare(one.created ?? ""),
  );
}
