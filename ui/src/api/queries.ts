/** Reads and writes, as options of the query cache. */

import { infiniteQueryOptions, type QueryClient, queryOptions } from "@tanstack/react-query";
import { request } from "./client.ts";
import { ApiError } from "./errors.ts";
import { feedOf, type ListKey } from "./feed.ts";
import type {
  AccessExplanation,
  AccessQuestion,
  Allowed,
  AuditEvent,
  Cluster,
  Collection,
  ImportCheck,
  LoginProvider,
  Node,
  PasswordChange,
  RegistrationToken,
  Resource,
  Setting,
  User,
} from "./types.ts";

/** Maximum number of pages of a list; a longer list is cut, and the page shows that. */
const PAGES_MAX = 10;
/** A whole list, with the events of the change feed during the read. */
export function list<T extends { id: string; type: string }>(
  client: QueryClient,
  key: ListKey,
  path: string,
): Promise<T[]> {
  return feedOf(client).read(key, () => pages<T>(path));
}

/** Follows the links from page to page. */
export async function pages<T>(path: string): Promise<T[]> {
  const found: T[] = [];
  let next: string | undefined = path;
  for (let page = 0; next && page < PAGES_MAX; page += 1) {
    const page: Collection<T> = await request("GET", next);
    found.push(...page.data);
    next = page.pagination?.next ? samePath(page.pagination.next) : undefined;
  }
  return found;
}

/** Links contain the server's own host name, which may differ from that in the browser. */
function samePath(link: string): string {
  const { pathname, search } = new URL(link, window.location.href);
  return pathname + search;
}

/**
 * Set at a login, because scripts do not see its cookie: without it, no request for the session is
 * needed.
 */
const SIGNED_IN = "drover.signed-in";

/**
 * Whether this browser has a login that was not ended here. Only the server knows whether it is
 * valid.
 */
export function mayBeSignedIn(): boolean {
  // A login on the pages of an identity provider leaves this cookie only.
  return localStorage.getItem(SIGNED_IN) !== null || document.cookie.includes("__Host-CSRF=");
}

/** Where users can log in; directories and the server itself have no pages of their own. */
export const providersQuery = queryOptions({
  queryKey: ["providers"],
  queryFn: async () => {
    const all = await request<Collection<LoginProvider>>("GET", "/v3-public/authProviders");
    // Who has a directory uses it more than the local accounts.
    return all.data.sort((a, b) => Number(a.id === "local") - Number(b.id === "local"));
  },
  staleTime: 60_000,
});

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: async (): Promise<User> => {
    if (!mayBeSignedIn()) {
      throw new ApiError(401, "Unauthorized", "nobody is logged in");
    }
    const users = await request<Collection<User>>("GET", "/v3/users?me=true");
    const me = users.data[0];
    if (!me) throw new ApiError(401, "Unauthorized", "nobody is logged in");
    return me;
  },
  staleTime: 60_000,
});

export const clustersQuery = queryOptions({
  queryKey: ["list", "cluster"] as const,
  queryFn: ({ client, queryKey }) => list<Cluster>(client, queryKey, "/v3/clusters"),
});

export function nodesQuery(clusterId: string) {
  return queryOptions({
    queryKey: ["list", "node", clusterId] as const,
    queryFn: ({ client, queryKey }) =>
      list<Node>(client, queryKey, `/v3/nodes?clusterId=${encodeURIComponent(clusterId)}`),
  });
}

/** Events of the audit log, page by page. `query`: filters of the API. */
export function auditQuery(query: string) {
  const first = `/v3/auditevents${query && "?"}${query}`;
  return infiniteQueryOptions({
    queryKey: ["audit", query] as const,
    queryFn: ({ pageParam }) => request<Collection<AuditEvent>>("GET", pageParam),
    initialPageParam: first,
    getNextPageParam: ({ pagination }) => pagination?.next && samePath(pagination.next),
    // Each read is itself an event of the log: only on request of the user.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
  });
}

export function registrationTokensQuery(clusterId: string) {
  return queryOptions({
    queryKey: ["list", "clusterRegistrationToken", clusterId] as const,
    queryFn: ({ client, queryKey }) =>
      list<RegistrationToken>(
        client,
        queryKey,
        `/v3/clusterregistrationtokens?clusterId=${encodeURIComponent(clusterId)}`,
      ),
  });
}

/** Maximum age of the list of entries that manage a cluster: one may be removed meanwhile. */
const IMPORT_CHECK_AGE_MAX_MS = 15_000;

/**
 * Which other entries manage the cluster whose agent was refused, as far as the caller may see
 * them.
 */
export function importCheckQuery(clusterId: string) {
  return queryOptions({
    queryKey: ["import-check", clusterId],
    queryFn: () =>
      request<ImportCheck>("GET", `/v3/import-check?clusterId=${encodeURIComponent(clusterId)}`),
    staleTime: IMPORT_CHECK_AGE_MAX_MS,
    refetchInterval: IMPORT_CHECK_AGE_MAX_MS,
  });
}

/** A setting that everybody may read; empty when it is not set or may not be read. */
export function settingQuery(name: string) {
  return queryOptions({
    queryKey: ["setting", name],
    queryFn: async (): Promise<string> => {
      try {
        return (await request<Setting>("GET", `/v3/settings/${name}`)).value ?? "";
      } catch (error) {
        if (error instanceof ApiError && (error.isForbidden || error.isNotFound)) return "";
        throw error;
      }
    },
    staleTime: 300_000,
  });
}

/** Logs in: the server sets the cookie, which scripts cannot read. */
/** Logs in with a password at a provider, or as a local user. */
export async function login(
  provider: LoginProvider | undefined,
  username: string,
  password: string,
): Promise<void> {
  const { type, id } = provider ?? { type: "localProvider", id: "local" };
  await request("POST", `/v3-public/${type}s/${id}?action=login`, {
    username,
    password,
    responseType: "cookie",
    description: "Web interface",
  });
  localStorage.setItem(SIGNED_IN, "yes");
}

/** Ends the login on the server, and clears all data. */
export async function logout(client: QueryClient): Promise<void> {
  await request("POST", "/v3/tokens?action=logout", {});
  localStorage.removeItem(SIGNED_IN);
  client.clear();
}

/**
 * Sets the signed-in user's own password. `endTokens`: also ends tokens for the API and in
 * kubeconfigs.
 */
export function changePassword(
  currentPassword: string,
  newPassword: string,
  endTokens: boolean,
): Promise<PasswordChange> {
  const body = { currentPassword, newPassword, endTokens };
  return request("POST", "/v3/users?action=changepassword", body);
}

export function createCluster(name: string): Promise<Cluster> {
  return request("POST", "/v3/clusters", { name });
}

export function createRegistrationToken(clusterId: string): Promise<RegistrationToken> {
  return request("POST", "/v3/clusterregistrationtokens", { clusterId });
}

/** How a cluster is removed; see `removalOptions` in the clusters' model. */
export interface RemovalMarks {
  /** Do not wait for a cluster that does not respond. */
  force: boolean;
  /** Leave the machines that Drover created. */
  detach: boolean;
}

/** Removes a cluster, or changes the options of a removal in progress. */
export async function removeCluster(cluster: Cluster, marks: RemovalMarks): Promise<void> {
  const path = `/v3/clusters/${encodeURIComponent(cluster.id)}`;
  const { [FORCE_REMOVE]: force, [DETACH]: detach, ...others } = cluster.annotations ?? {};
  const annotations = {
    ...others,
    ...(marks.force && { [FORCE_REMOVE]: "true" }),
    ...(marks.detach && { [DETACH]: "true" }),
  };
  if ((force === "true") !== marks.force || (detach === "true") !== marks.detach) {
    await request("PUT", path, { annotations });
  }
  if (cluster.state !== "removing") await request("DELETE", path);
}

const FORCE_REMOVE = "drover.io/force-remove";
const DETACH = "drover.io/detach";

/** Cordons or uncordons a node. */
export function cordonNode(node: Node, cordoned: boolean): Promise<unknown> {
  const action = cordoned ? "cordon" : "uncordon";
  return request("POST", `/v3/nodes/${encodeURIComponent(node.id)}?action=${action}`, {});
}

/** Options of a drain; omitted ones have the defaults of the server. */
export interface DrainOptions {
  /** Also pods that no controller restarts. */
  force: boolean;
  /** Also pods that lose their data in an emptyDir. */
  deleteLocalData: boolean;
  /** Seconds that each pod has to terminate; -1 is its own grace period. */
  gracePeriod: number;
  /** Seconds after which the drain gives up. */
  timeout: number;
}

/** Starts to evict the pods of a node. */
export function drainNode(node: Node, options: DrainOptions): Promise<unknown> {
  return request("POST", `/v3/nodes/${encodeURIComponent(node.id)}?action=drain`, options);
}

/** Ends a drain; the node stays cordoned. */
export function stopDrain(node: Node): Promise<unknown> {
  return request("POST", `/v3/nodes/${encodeURIComponent(node.id)}?action=stopDrain`, {});
}

/** Deletes a node from its cluster. */
export function deleteNode(node: Node): Promise<unknown> {
  return request("DELETE", `/v3/nodes/${encodeURIComponent(node.id)}`);
}

export async function kubeconfig(id: string): Promise<string> {
  const path = `/v3/clusters/${encodeURIComponent(id)}?action=generateKubeconfig`;
  return (await request<{ config: string }>("POST", path, {})).config;
}

export interface Dependants {
  projects: number;
  /** Roles of users on the cluster. */
  roles: number;
}

/** The objects that would be removed with a cluster, counted by the server. */
export function dependantsQuery(clusterId: string) {
  const counted = async (plural: string): Promise<number> => {
    const path = `/v3/${plural}?limit=1&clusterId=${encodeURIComponent(clusterId)}`;
    const page: Collection<Resource> = await request("GET", path);
    return page.pagination?.total ?? page.data.length;
  };
  return queryOptions({
    queryKey: ["dependants", clusterId],
    queryFn: async (): Promise<Dependants> => {
      const kinds = ["projects", "clusterroletemplatebindings"];
      const [projects = 0, roles = 0] = await Promise.all(kinds.map(counted));
      return { projects, roles };
    },
    staleTime: 0,
  });
}

/** The id of the user with this name or id. */
export async function userNamed(name: string): Promise<string> {
  const path = `/v3/users?username=${encodeURIComponent(name)}`;
  const found = (await request<Collection<User>>("GET", path)).data[0];
  return found?.id ?? name;
}

/** Why a user may do something in a cluster, or which right is missing. */
export function explainAccess(question: AccessQuestion): Promise<AccessExplanation> {
  return request("POST", "/drover.io/v1/access/why", question);
}

/** Who may do something in a cluster. */
export function listAllowed(question: AccessQuestion): Promise<Allowed> {
  return request("POST", "/drover.io/v1/access/who", question);
}

/** What pods requested and nodes had at a time. */
export interface UsageSample {
  /** Unix seconds. */
  at: number;
  cpu: UsageShare;
  memory: UsageShare;
  pods: UsageShare;
}
export interface UsageShare {
  requested: number;
  allocatable: number;
  /** In use on the nodes; null where the cluster does not measure it. */
  used: number | null;
}

/** The last hour of a cluster, from its link; the server has it in memory. */
export function usageQuery(clusterId: string, link: string | undefined) {
  return queryOptions({
    queryKey: ["usage", clusterId],
    queryFn: () =>
      request<{ intervalSeconds: number; samples: UsageSample[] }>(
        "GET",
        `/v3/clusters/${encodeURIComponent(clusterId)}/usage`,
      ),
    enabled: link !== undefined,
    refetchInterval: 30_000,
    retry: false,
  });
}

/** The version of the management API. */
export const apiVersionQuery = queryOptions({
  queryKey: ["api-version"],
  queryFn: async () => (await request<{ gitVersion: string }>("GET", "/version")).gitVersion,
  staleTime: Number.POSITIVE_INFINITY,
  retry: false,
});
