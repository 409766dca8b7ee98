/** Users of the server, as their administrators see them. */

import { queryOptions } from "@tanstack/react-query";
import { request } from "./client.ts";
import { list, pages } from "./queries.ts";
import type { RbacRule, Resource, User } from "./types.ts";

/** A user as administrators see them. */
export interface KnownUser extends User {
  enabled?: boolean | null;
  description?: string | null;
  principalIds?: string[] | null;
}

export interface GlobalRoleBinding extends Resource {
  globalRoleId: string;
  userId?: string | null;
  groupPrincipalId?: string | null;
}

export const usersQuery = queryOptions({
  queryKey: ["list", "user"] as const,
  queryFn: ({ client, queryKey }) => list<KnownUser>(client, queryKey, "/v3/users"),
});

/** The global roles of all users. */
export const globalRoleBindingsQuery = queryOptions({
  queryKey: ["list", "globalRoleBinding"] as const,
  queryFn: ({ client, queryKey }) =>
    list<GlobalRoleBinding & Resource>(client, queryKey, "/v3/globalrolebindings"),
});

export interface NewUser {
  username: string;
  name: string;
  password: string;
  mustChangePassword: boolean;
}

/** Creates a user, with a global role if one is given. */
export async function createUser(user: NewUser, globalRoleId: string): Promise<KnownUser> {
  const created = await request<KnownUser>("POST", "/v3/users", user);
  if (globalRoleId) await giveGlobalRole(created.id, globalRoleId);
  return created;
}

export function giveGlobalRole(userId: string, globalRoleId: string): Promise<unknown> {
  return request("POST", "/v3/globalrolebindings", { userId, globalRoleId });
}

/** Gives a role to all members of a group of an identity provider. */
export function giveGroupRole(groupPrincipalId: string, globalRoleId: string): Promise<unknown> {
  return request("POST", "/v3/globalrolebindings", { groupPrincipalId, globalRoleId });
}

/** Reads anew of which groups all users are members, at their identity providers. */
export function refreshGroups(): Promise<unknown> {
  return request("POST", "/v3/users?action=refreshauthprovideraccess", {});
}

export function takeGlobalRole(bindingId: string): Promise<unknown> {
  return request("DELETE", `/v3/globalrolebindings/${encodeURIComponent(bindingId)}`);
}

function userPath(id: string): string {
  return `/v3/users/${encodeURIComponent(id)}`;
}

/** A user who is disabled is cut off at once, and may not log in. */
export function enableUser(id: string, enabled: boolean): Promise<unknown> {
  return request("PUT", userPath(id), { enabled });
}

/** Ends the user's logins; with `mustChangePassword` it is theirs only until the next one. */
export async function setPassword(id: string, newPassword: string): Promise<void> {
  await request("POST", `${userPath(id)}?action=setpassword`, { newPassword });
  await request("PUT", userPath(id), { mustChangePassword: true });
}

export function deleteUser(id: string): Promise<unknown> {
  return request("DELETE", userPath(id));
}

/** A global role or a role template, with its rules. */
export interface KnownRole extends Resource {
  name: string;
  description?: string | null;
  builtin?: boolean;
  /** It can no longer be given. */
  locked?: boolean;
  rules?: RbacRule[] | null;
  /** Roles whose rules it has as well. */
  roleTemplateIds?: string[] | null;
  /** Of a global role: new users get it. */
  newUserDefault?: boolean;
  /** Of a role in clusters: who creates a cluster gets it there. */
  clusterCreatorDefault?: boolean;
  /** Of a role in projects. */
  projectCreatorDefault?: boolean;
}

/** The roles that are given on the server itself, in clusters, or in projects. */
export function rolesOfQuery(kind: "global" | "cluster" | "project") {
  const path = kind === "global" ? "/v3/globalroles" : `/v3/roletemplates?context=${kind}`;
  return queryOptions({
    queryKey: ["roles-of", kind],
    queryFn: async () => {
      const roles = await pages<KnownRole>(path);
      return roles.sort((one, other) => one.name.localeCompare(other.name));
    },
    staleTime: 60_000,
  });
}

/** What a user says of a role. */
export interface RoleContent extends Omit<KnownRole, keyof Resource> {
  rules: RbacRule[];
}

/** Creates a role, or changes the one with this id. */
export function saveRole(
  kind: "global" | "cluster" | "project",
  content: RoleContent,
  id: string | undefined,
): Promise<KnownRole> {
  const path = rolePath(kind, id);
  if (id) return request("PUT", path, content);
  return request("POST", path, kind === "global" ? content : { ...content, context: kind });
}

/** Roles that somebody holds or that another one inherits are refused. */
export function deleteRole(kind: "global" | "cluster" | "project", id: string): Promise<unknown> {
  return request("DELETE", rolePath(kind, id));
}

function rolePath(kind: "global" | "cluster" | "project", id?: string): string {
  const all = kind === "global" ? "/v3/globalroles" : "/v3/roletemplates";
  return id ? `${all}/${encodeURIComponent(id)}` : all;
}
