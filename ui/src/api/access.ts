/**
 * What the caller may do, according to the server's authorizer, and who can grant more.
 *
 * Pages use it to show early what would be refused; the server decides on the request itself.
 */

import { queryOptions } from "@tanstack/react-query";
import { clusterPath, request } from "./client.ts";
import { isUnauthenticated } from "./errors.ts";
import type { Collection, Principal, RoleBinding } from "./types.ts";

const GROUP = "management.cattle.io";
/** Rights change while a page is open. */
const RIGHT_FRESH_MS = 30_000;
/** Maximum number of displayed users who can grant a right. */
const GRANTORS_MAX = 3;

interface AccessReview {
  status?: { allowed?: boolean };
}

/** A request to the Kubernetes API of a cluster, as its authorizer sees it. */
export interface ClusterRequest {
  verb: string;
  group: string;
  resource: string;
  subresource?: string;
  namespace?: string;
  name?: string;
}

/** Whether the caller may send a request to a cluster; the cluster itself decides. */
export function mayInClusterQuery(clusterId: string, resourceAttributes: ClusterRequest) {
  const path = `${clusterPath(clusterId)}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews`;
  return queryOptions({
    queryKey: ["may-in-cluster", clusterId, resourceAttributes] as const,
    queryFn: () => isAllowed(path, resourceAttributes),
    staleTime: RIGHT_FRESH_MS,
  });
}

async function isAllowed(path: string, resourceAttributes: object): Promise<boolean> {
  const review = await request<AccessReview>("POST", path, {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    spec: { resourceAttributes },
  });
  return review.status?.allowed === true;
}

/** The object of a right in the management API; empty parts: any, or in all namespaces. */
export interface ManagementPlace {
  name?: string;
  namespace?: string;
}

/** Whether the caller may do `verb` on a kind of the management API, or on one object of it. */
export function mayQuery(verb: string, resource: string, place: ManagementPlace = {}) {
  return queryOptions({
    queryKey: ["may", verb, resource, place] as const,
    queryFn: () =>
      isAllowed("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
        ...{ group: GROUP, verb, resource },
        ...place,
      }),
    staleTime: RIGHT_FRESH_MS,
  });
}

/**
 * Names of users who can grant rights: owners of a cluster, else administrators. As far as the
 * caller may see them.
 */
export function grantorsQuery(clusterId?: string) {
  const path = clusterId
    ? `/v3/clusterroletemplatebindings?roleTemplateId=cluster-owner&clusterId=${encodeURIComponent(clusterId)}`
    : "/v3/globalrolebindings?globalRoleId=admin";
  return queryOptions({
    queryKey: ["grantors", clusterId ?? ""] as const,
    queryFn: async (): Promise<string[]> => {
      const bindings = await visible(request<Collection<RoleBinding>>("GET", path));
      const users = new Set(bindings?.data.flatMap(({ userId }) => userId ?? []));
      const names = [...users].slice(0, GRANTORS_MAX).map(nameOf);
      return (await Promise.all(names)).filter((name) => name !== undefined);
    },
    staleTime: RIGHT_FRESH_MS,
  });
}

async function nameOf(userId: string): Promise<string | undefined> {
  const path = `/v3/principals/${encodeURIComponent(`local://${userId}`)}`;
  return (await visible(request<Principal>("GET", path)))?.name;
}

/** The response, or nothing if the caller may not see it. */
async function visible<T>(response: Promise<T>): Promise<T | undefined> {
  try {
    return await response;
  } catch (error) {
    if (isUnauthenticated(error)) throw error;
    return undefined;
  }
}
