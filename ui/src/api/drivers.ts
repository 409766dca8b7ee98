/** Cluster drivers: programs from a URL that make clusters at a provider. */

import { queryOptions, skipToken } from "@tanstack/react-query";
import { request } from "./client.ts";
import { ApiError } from "./errors.ts";
import { pages } from "./queries.ts";
import { readSchema, type TypeSchema } from "./schemas.ts";
import type { Resource } from "./types.ts";

/** While a driver is fetched or started, and else. */
const QUICK_MS = 1_000;
const SLOW_MS = 10_000;

export interface ClusterDriver extends Resource {
  name?: string | null;
  active?: boolean;
  builtIn?: boolean;
  url?: string | null;
  checksum?: string | null;
  uiUrl?: string | null;
  whitelistDomains?: string[] | null;
}

/** What users say of a driver. */
export interface DriverFields {
  url: string;
  name: string;
  checksum: string;
  uiUrl: string;
  whitelistDomains: string[];
}

/** The type with a driver's options; the field of clusters that has them is named like it. */
export function driverOptionsQuery(driver: ClusterDriver | undefined) {
  return queryOptions({
    queryKey: ["driver-options", driver?.id],
    queryFn: driver ? () => readOptions(driver) : skipToken,
  });
}

async function readOptions({ id, name, builtIn }: ClusterDriver): Promise<TypeSchema> {
  const suffix = builtIn ? "Config" : "EngineConfig";
  const isOfDriver = (schema: TypeSchema) => schema.resourceFields.driverName?.default === id;
  // Types are named after the driver's file. Somebody may have given the driver another name.
  const cluster = await readSchema("cluster");
  const fields = Object.keys(cluster.resourceFields).filter((field) => field.endsWith(suffix));
  const likely = `${name}${suffix}`;
  fields.sort((one, other) => Number(other === likely) - Number(one === likely));
  for (const field of fields) {
    const found = await readSchema(field).catch((error: unknown) => {
      if (error instanceof ApiError && error.isNotFound) return undefined;
      throw error;
    });
    if (found && isOfDriver(found)) return found;
  }
  throw new Error(`The options of the driver ${name} are not known: is it still active?`);
}

export const driversQuery = queryOptions({
  queryKey: ["drivers"],
  queryFn: () => pages<ClusterDriver>("/v3/kontainerdrivers"),
  refetchInterval: ({ state }) =>
    state.data?.some(({ transitioning }) => transitioning === "yes") ? QUICK_MS : SLOW_MS,
});

export function addDriver(driver: DriverFields & { active: boolean }): Promise<ClusterDriver> {
  return request("POST", "/v3/kontainerdrivers", driver);
}

/** Changes the given fields. */
export function changeDriver(id: string, fields: Partial<DriverFields>): Promise<ClusterDriver> {
  return request("PUT", `/v3/kontainerdrivers/${encodeURIComponent(id)}`, fields);
}

export function switchDriver(id: string, action: "activate" | "deactivate"): Promise<unknown> {
  return request("POST", `/v3/kontainerdrivers/${encodeURIComponent(id)}?action=${action}`, {});
}

export function removeDriver(id: string): Promise<unknown> {
  return request("DELETE", `/v3/kontainerdrivers/${encodeURIComponent(id)}`);
}
