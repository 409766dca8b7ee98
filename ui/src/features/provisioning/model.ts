/** Clusters that a driver makes, in words. Pure. */

import type { ClusterDriver } from "../../api/drivers.ts";
import type { Cluster } from "../../api/types.ts";

/** The drivers that can make a cluster now, in the order of their names. */
export function usableDrivers(drivers: readonly ClusterDriver[]): ClusterDriver[] {
  const usable = drivers.filter(({ state, name }) => state === "active" && name);
  return usable.sort((one, other) => (one.name ?? "").localeCompare(other.name ?? ""));
}

/** The field of clusters with the options of a driver, and the name of its type. */
export function optionsField({ name, builtIn }: ClusterDriver): string {
  return `${name}${builtIn ? "Config" : "EngineConfig"}`;
}

/** Whether the driver does something, or is about to. */
export function isAtWork({ state, transitioning }: Cluster): boolean {
  return transitioning !== "no" && ["pending", "provisioning", "updating"].includes(state ?? "");
}
