/** Cluster drivers: programs from a URL that make clusters at a provider. */

import { queryOptions } from "@tanstack/react-query";
import { request } from "./client.ts";
import { pages } from "./queries.ts";
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

export interface NewDriver {
  url: string;
  active: boolean;
  name?: string;
  checksum?: string;
  uiUrl?: string;
  whitelistDomains?: string[];
}

export const driversQuery = queryOptions({
  queryKey: ["drivers"],
  queryFn: () => pages<ClusterDriver>("/v3/kontainerdrivers"),
  refetchInterval: ({ state }) =>
    state.data?.some(({ transitioning }) => transitioning === "yes") ? QUICK_MS : SLOW_MS,
});

export function addDriver(driver: NewDriver): Promise<ClusterDriver> {
  return request("POST", "/v3/kontainerdrivers", driver);
}

export function switchDriver(id: string, action: "activate" | "deactivate"): Promise<unknown> {
  return request("POST", `/v3/kontainerdrivers/${encodeURIComponent(id)}?action=${action}`, {});
}

export function removeDriver(id: string): Promise<unknown> {
  return request("DELETE", `/v3/kontainerdrivers/${encodeURIComponent(id)}`);
}
