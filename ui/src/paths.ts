/**
 * Every address of the interface. The server knows the first parts (`PAGES` in
 * crates/server/src/ui.rs).
 */

import type { AuditSearch } from "./features/audit/search.ts";
import type { ClusterSearch } from "./features/clusters/search.ts";
import type { KindSearch, ObjectSearch } from "./features/explorer/search.ts";

/** The guide, which the server serves as separate pages: a link, not a route. */
export const GUIDE = "/docs/";

export const paths = {
  /**
   * `loginEnd`: why the login ended. It is not in the address, because a link could contain any
   * text.
   */
  login: (to?: string, loginEnd?: string) =>
    ({ to: "/login", search: to ? { to } : {}, state: loginEnd ? { loginEnd } : {} }) as const,
  clusters: (search: ClusterSearch = {}) => ({ to: "/clusters", search }) as const,
  cluster: (cluster: string) => ({ to: "/c/$cluster", params: { cluster } }) as const,
  nodes: (cluster: string) => ({ to: "/c/$cluster/nodes", params: { cluster } }) as const,
  password: () => ({ to: "/password" }) as const,
  audit: (search: AuditSearch = {}) => ({ to: "/audit", search }) as const,
  clusterAudit: (cluster: string, search: AuditSearch = {}) =>
    ({ to: "/c/$cluster/audit", params: { cluster }, search }) as const,
  access: (cluster: string) => ({ to: "/c/$cluster/access", params: { cluster } }) as const,
  projects: (cluster: string) => ({ to: "/c/$cluster/projects", params: { cluster } }) as const,
  members: (cluster: string) => ({ to: "/c/$cluster/members", params: { cluster } }) as const,
  /** `project`: the part of its id after its cluster's. */
  project: (cluster: string, project: string) =>
    ({ to: "/c/$cluster/projects/$project", params: { cluster, project } }) as const,
  providers: () => ({ to: "/providers" }) as const,
  drivers: () => ({ to: "/drivers" }) as const,
  settings: () => ({ to: "/settings" }) as const,
  tokens: () => ({ to: "/tokens" }) as const,
  users: () => ({ to: "/users" }) as const,
  roles: () => ({ to: "/users/roles" }) as const,
  groups: () => ({ to: "/users/groups" }) as const,
  kinds: (cluster: string) => ({ to: "/c/$cluster/kinds", params: { cluster } }) as const,
  /** `type`: its plural, such as `apps.deployments`. */
  kind: (cluster: string, type: string, search: KindSearch = {}) =>
    ({ to: "/c/$cluster/kinds/$type", params: { cluster, type }, search }) as const,
  /** `id`: `namespace/name`, or `name`. */
  kindObject: (cluster: string, type: string, id: string, search: ObjectSearch = {}) =>
    ({ to: "/c/$cluster/objects/$type/$", params: { cluster, type, _splat: id }, search }) as const,
  conditions: (cluster: string) => ({ to: "/c/$cluster/conditions", params: { cluster } }) as const,
};
