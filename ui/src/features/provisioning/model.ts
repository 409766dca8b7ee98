/** Clusters that a driver makes, in words. Pure. */

import type { ClusterDriver } from "../../api/drivers.ts";
import type { Cluster } from "../../api/types.ts";

/** The drivers that can make a cluster now, in the order of their names. */
export function usableDrivers(drivers: readonly ClusterDriver[]): ClusterDriver[] {
  const usable = drivers.filter(({ state, name }) => state === "active" && name);
  return usable.sort((one, other) => (one.name ?? "").localeCompare(other.name ?? ""));
}

/** What most people set, by driver. Of other drivers it is not known, and all options are shown. */
const FIRST_OPTIONS: Record<string, readonly string[]> = {
  amazonElasticContainerService: [
    ...["accessKey", "secretKey", "region", "kubernetesVersion"],
    ...["instanceType", "desiredNodes", "minimumNodes", "maximumNodes"],
  ],
  azureKubernetesService: [
    ...["subscriptionId", "tenantId", "clientId", "clientSecret", "resourceGroup", "location"],
    ...["kubernetesVersion", "count", "agentVmSize", "sshPublicKeyContents"],
  ],
  googleKubernetesEngine: [
    ...["projectId", "credential", "zone", "region", "masterVersion"],
    ...["nodeCount", "machineType", "diskSizeGb"],
  ],
};

/** The options that come first in the form, in order, of these that the driver has. */
export function firstOptions(driver: ClusterDriver, names: readonly string[]): readonly string[] {
  return (driver.builtIn && FIRST_OPTIONS[driver.name ?? ""]) || names;
}

/** Whether the driver does something, or is about to. */
export function isAtWork({ state, transitioning }: Cluster): boolean {
  return transitioning !== "no" && ["pending", "provisioning", "updating"].includes(state ?? "");
}
