/** Projects: their members, namespaces and quotas. */

import { type QueryClient, queryOptions } from "@tanstack/react-query";
import { request } from "./client.ts";
import { list, pages } from "./queries.ts";
import type { Collection, Condition, Principal, Quantities, Resource } from "./types.ts";

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

/** A role of a user or group in a project. */
export interface Member extends Resource {
  projectId?: string;
  roleTemplateId: string;
  userId?: string | null;
  userPrincipalId?: string | null;
  groupId?: string | null;
  groupPrincipalId?: string | null;
}

export interface RoleTemplate extends Resource {
  name: string;
  description?: string | null;
}

/** A user or group of the identity provider or of the server. */
export interface FoundPrincipal extends Principal {
  loginName?: string | null;
  principalType?: "user" | "group";
  provider?: string;
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

const MEMBERS = "/v3/projectroletemplatebindings";

/** Who has roles in a project. */
export function membersQuery(projectId: string) {
  return queryOptions({
    queryKey: ["members", projectId] as const,
    queryFn: () => pages<Member>(`${MEMBERS}?projectId=${encodeURIComponent(projectId)}`),
    retry: false,
  });
}

/** The roles that can be given in projects. */
export const projectRolesQuery = queryOptions({
  queryKey: ["role-templates", "project"],
  queryFn: async () => {
    const roles = await pages<RoleTemplate>(
      "/v3/roletemplates?context=project&hidden=false&locked=false",
    );
    return roles.sort(
      (one, other) => usual(one) - usual(other) || one.name.localeCompare(other.name),
    );
  },
  staleTime: 60_000,
});

/** Those that most people get come first. */
const USUAL_ROLES = ["project-owner", "project-member", "read-only"];

function usual({ id }: RoleTemplate): number {
  const place = USUAL_ROLES.indexOf(id);
  return place < 0 ? USUAL_ROLES.length : place;
}

/** Users and groups whose name or login begins with a text. */
export function principalsQuery(name: string) {
  return queryOptions({
    queryKey: ["principals", name],
    queryFn: async () => {
      const found = await request<Collection<FoundPrincipal>>(
        "POST",
        "/v3/principals?action=search",
        { name },
      );
      return found.data;
    },
    enabled: name.length > 0,
    staleTime: 30_000,
    retry: false,
  });
}

/** A user or group by its id, such as `local://u-abcde`. */
export function principalQuery(id: string) {
  return queryOptions({
    queryKey: ["principal", id],
    queryFn: () => request<FoundPrincipal>("GET", `/v3/principals/${encodeURIComponent(id)}`),
    staleTime: 300_000,
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

export function addMember(
  projectId: string,
  roleTemplateId: string,
  principal: FoundPrincipal,
): Promise<Member> {
  const field = principal.principalType === "group" ? "groupPrincipalId" : "userPrincipalId";
  return request("POST", MEMBERS, { projectId, roleTemplateId, [field]: principal.id });
}

export function removeMember(id: string): Promise<unknown> {
  return request("DELETE", `${MEMBERS}/${encodeURIComponent(id)}`);
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
