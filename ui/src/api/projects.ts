/** Projects: their namespaces and quotas. */

import { type QueryClient, queryOptions } from "@tanstack/react-query";
import { request } from "./client.ts";
import { list, pages } from "./queries.ts";
import type { Condition, Quantities, Resource } from "./types.ts";

export interface Project extends Resource {
  name: string;
  description?: string | null;
  clusterId: string;
  conditions?: Condition[] | null;
  labels?: Record<string, string> | null;
  /** Of all its namespaces together; nothing: no limits. */
  resourceQuota?: { limit?: Quantities | null; usedLimit?: Quantities | null } | null;
  /** What a namespace gets if it does not say. */
  namespaceDefaultResourceQuota?: { limit?: Quantities | null } | null;
}

export interface Namespace extends Resource {
  name: string;
  /** Nothing: it is in no project. */
  projectId?: string | null;
}

export function projectsQuery(clusterId: string) {
  return queryOptions({
    queryKey: ["list", "project", clusterId] as const,
    queryFn: ({ client, queryKey }) =>
      list<Project>(client, queryKey, `/v3/projects?clusterId=${encodeURIComponent(clusterId)}`),
  });
}

function namespacesPath(clusterId: string): string {
  return `/v3/clusters/${encodeURIComponent(clusterId)}/namespaces`;
}

/** The namespaces of a cluster, with the project of each. */
export function projectNamespacesQuery(clusterId: string) {
  return queryOptions({
    queryKey: ["project-namespaces", clusterId] as const,
    queryFn: () => pages<Namespace>(namespacesPath(clusterId)),
    retry: false,
  });
}

export interface ProjectChange {
  name?: string;
  description?: string;
  resourceQuota?: { limit: Quantities } | null;
  namespaceDefaultResourceQuota?: { limit: Quantities } | null;
}

export function createProject(clusterId: string, change: ProjectChange): Promise<Project> {
  return request("POST", "/v3/projects", { ...change, clusterId });
}

export function changeProject(id: string, change: ProjectChange): Promise<Project> {
  return request("PUT", `/v3/projects/${encodeURIComponent(id)}`, change);
}

export function deleteProject(id: string): Promise<unknown> {
  return request("DELETE", `/v3/projects/${encodeURIComponent(id)}`);
}

export function createNamespace(
  clusterId: string,
  name: string,
  projectId: string,
): Promise<Namespace> {
  return request("POST", namespacesPath(clusterId), { name, projectId });
}

/** Puts a namespace into another project; `null`: into none. */
export function moveNamespace(
  clusterId: string,
  name: string,
  projectId: string | null,
): Promise<unknown> {
  const path = `${namespacesPath(clusterId)}/${encodeURIComponent(name)}?action=move`;
  return request("POST", path, { projectId });
}

/** Reads all of a cluster's projects again. */
export function readProjectsAnew(client: QueryClient, clusterId: string): void {
  void client.invalidateQueries({ queryKey: ["list", "project", clusterId] });
  void client.invalidateQueries({ queryKey: ["project-namespaces", clusterId] });
  void client.invalidateQueries({ queryKey: ["kind-namespaces", clusterId] });
  void client.invalidateQueries({ queryKey: ["members"] });
}
