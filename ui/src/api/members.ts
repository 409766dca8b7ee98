/** Who has roles in a cluster or a project. */

import { queryOptions } from "@tanstack/react-query";
import { request } from "./client.ts";
import { pages } from "./queries.ts";
import type { Collection, Principal, Resource } from "./types.ts";

/** Where roles are given. */
export interface MemberScope {
  level: "cluster" | "project";
  /** Of the cluster or project, as in `/v3`. */
  id: string;
  name: string;
}

/** A role of a user or group. */
export interface Member extends Resource {
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

interface Level {
  /** The type of its bindings. */
  type: string;
  /** The resource of its bindings. */
  resource: string;
  /** The field of a binding that says where it is. */
  field: string;
  /** Roles that most people get come first. */
  usual: readonly string[];
}

const LEVELS: Record<MemberScope["level"], Level> = {
  cluster: {
    type: "clusterRoleTemplateBinding",
    resource: "clusterroletemplatebindings",
    field: "clusterId",
    usual: ["cluster-owner", "cluster-member"],
  },
  project: {
    type: "projectRoleTemplateBinding",
    resource: "projectroletemplatebindings",
    field: "projectId",
    usual: ["project-owner", "project-member", "read-only"],
  },
};

/** The resource of the bindings of a level, and the namespace that they are in. */
export function bindingPlace({ level, id }: MemberScope): { resource: string; namespace: string } {
  return { resource: LEVELS[level].resource, namespace: id.split(":").at(-1) ?? id };
}

export function membersQuery({ level, id }: MemberScope) {
  const { resource, field } = LEVELS[level];
  return queryOptions({
    queryKey: ["members", level, id] as const,
    queryFn: () => pages<Member>(`/v3/${resource}?${field}=${encodeURIComponent(id)}`),
    retry: false,
  });
}

/** The roles that can be given on a level. */
export function rolesQuery(level: MemberScope["level"]) {
  const { usual } = LEVELS[level];
  const place = ({ id }: RoleTemplate) => (usual.includes(id) ? usual.indexOf(id) : usual.length);
  return queryOptions({
    queryKey: ["role-templates", level],
    queryFn: async () => {
      const roles = await pages<RoleTemplate>(
        `/v3/roletemplates?context=${level}&hidden=false&locked=false`,
      );
      return roles.sort(
        (one, other) => place(one) - place(other) || one.name.localeCompare(other.name),
      );
    },
    staleTime: 60_000,
  });
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

export function addMember(
  { level, id }: MemberScope,
  roleTemplateId: string,
  principal: FoundPrincipal,
): Promise<Member> {
  return request(
    "POST",
    `/v3/${LEVELS[level].resource}`,
    binding({ level, id }, roleTemplateId, principal),
  );
}

/** The binding that gives a role. */
function binding(
  { level, id }: Pick<MemberScope, "level" | "id">,
  roleTemplateId: string,
  principal: FoundPrincipal,
): Record<string, string> {
  const subject = principal.principalType === "group" ? "groupPrincipalId" : "userPrincipalId";
  return { [LEVELS[level].field]: id, roleTemplateId, [subject]: principal.id };
}

/** A role that somebody would have or lose. */
export interface Holding {
  role: string;
  kind: "User" | "Group";
  name: string;
  cluster?: string;
  project?: string;
}

/** What a change of roles would do. */
export interface Effect {
  gains: Holding[];
  /** How many users of each group have logged in. */
  groups: { group: string; users: number }[];
}

/** What giving a role would do, computed by the server, which changes nothing. */
export function effectQuery(
  scope: MemberScope,
  roleTemplateId: string,
  principal: FoundPrincipal | undefined,
) {
  return queryOptions({
    queryKey: ["effect", scope.level, scope.id, roleTemplateId, principal?.id],
    queryFn: (): Promise<Effect> => {
      if (!principal) throw new Error("there is nobody to give the role to");
      const { type } = LEVELS[scope.level];
      const apply = [{ type, ...binding(scope, roleTemplateId, principal) }];
      return request("POST", "/drover.io/v1/access/diff", { apply, delete: [] });
    },
    enabled: principal !== undefined && roleTemplateId !== "",
    retry: false,
  });
}

export function removeMember({ level }: MemberScope, bindingId: string): Promise<unknown> {
  const { resource } = LEVELS[level];
  return request("DELETE", `/v3/${resource}/${encodeURIComponent(bindingId)}`);
}
