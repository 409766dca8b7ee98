/** Clusters that a driver makes. */

import { queryOptions } from "@tanstack/react-query";
import { request } from "./client.ts";
import type { Cluster } from "./types.ts";

/** While the driver works, and else. */
const QUICK_MS = 1_000;
const SLOW_MS = 15_000;
/** Annotation that keeps the driver from doing anything. */
const PAUSED = "drover.io/paused";

export interface ProvisioningLog {
  /** Number of the first line; those before it are not stored. */
  first: number;
  lines: string[];
}

/** `isAtWork`: whether the driver is expected to write now. */
export function provisioningLogQuery(id: string, isAtWork: boolean) {
  return queryOptions({
    queryKey: ["provisioning-log", id],
    queryFn: () =>
      request<ProvisioningLog>("GET", `/v3/clusters/${encodeURIComponent(id)}/provisioninglog`),
    refetchInterval: isAtWork ? QUICK_MS : SLOW_MS,
  });
}

/** `field`: that of the driver, such as `exampleEngineConfig`. */
export function createCluster(
  name: string,
  field: string,
  options: Record<string, unknown>,
): Promise<Cluster> {
  return request("POST", "/v3/clusters", { type: "cluster", name, [field]: options });
}

export function isPaused({ annotations }: Cluster): boolean {
  return annotations?.[PAUSED] === "true";
}

/** Cancels what the driver does and begins nothing, or lets it go on. */
export function pauseDriver(cluster: Cluster, paused: boolean): Promise<Cluster> {
  const { [PAUSED]: _, ...others } = cluster.annotations ?? {};
  const annotations = { ...others, [PAUSED]: paused ? "true" : null };
  return request("PUT", `/v3/clusters/${encodeURIComponent(cluster.id)}`, { annotations });
}
