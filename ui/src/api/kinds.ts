/** Any kind of a cluster, and its objects: `/v1`. */

import { queryOptions } from "@tanstack/react-query";
import { type Change, clusterPath, request, requestText } from "./client.ts";
import { ApiError } from "./errors.ts";

/** A kind that a cluster serves, with what the user may do with it somewhere. */
export interface KindSchema {
  /** Such as `pod` or `apps.deployment`. */
  id: string;
  /** Such as `pods` or `apps.deployments`. */
  pluralName: string;
  collectionMethods?: string[];
  attributes: { group: string; version: string; kind: string; namespaced: boolean };
}

/** A column that the cluster prints; `field`: where its value is in an object. */
export interface KindColumn {
  name: string;
  field: string;
  type?: string;
  /** Above 0 only where there is much room. */
  priority?: number;
}

export interface KindObject {
  /** `namespace/name`, or `name`. */
  id: string;
  type: string;
  /** `update` and `remove` only if the user may do that. */
  links: Record<string, string>;
  metadata: {
    name: string;
    namespace?: string;
    uid: string;
    resourceVersion: string;
    creationTimestamp?: string;
    deletionTimestamp?: string;
    annotations?: Record<string, string>;
    /** Values of the columns, in order. */
    fields?: unknown[];
    state?: { name: string; error: boolean; transitioning: boolean; message: string };
  };
}

export interface KindList {
  data: KindObject[];
  columns: KindColumn[];
  /** How many fulfil the filters. */
  count: number;
  pages?: number;
  revision: string;
}

interface Counts {
  data: { counts: Record<string, { summary: { count: number } }> }[];
}

/** Objects of a page. */
export const PAGE_SIZE = 100;
/** The sidebar's numbers are at most this old. */
const COUNTS_AGE_MAX_MS = 60_000;
/** Namespaces that a filter offers. */
const NAMESPACES_MAX = 500;

/** The path of the view of a cluster. */
export function kindsPath(clusterId: string): string {
  return `${clusterPath(clusterId)}/v1`;
}

/** The kinds that the user may list, by name. */
export function kindsQuery(clusterId: string) {
  return queryOptions({
    queryKey: ["kinds", clusterId],
    queryFn: async (): Promise<KindSchema[]> => {
      const path = `${kindsPath(clusterId)}/schemas`;
      const all = await request<{ data: KindSchema[] }>("GET", path);
      const listed = all.data.filter(({ collectionMethods }) => collectionMethods?.includes("GET"));
      return listed.sort((a, b) => a.attributes.kind.localeCompare(b.attributes.kind));
    },
    staleTime: 60_000,
  });
}

/** How many objects of each kind the user may list, by id of the kind. */
export function countsQuery(clusterId: string) {
  return queryOptions({
    queryKey: ["kind-counts", clusterId],
    queryFn: async (): Promise<Map<string, number>> => {
      const { data } = await request<Counts>("GET", `${kindsPath(clusterId)}/counts`);
      const counts = Object.entries(data[0]?.counts ?? {});
      return new Map(counts.map(([id, { summary }]) => [id, summary.count]));
    },
    staleTime: COUNTS_AGE_MAX_MS,
    refetchInterval: COUNTS_AGE_MAX_MS,
    retry: false,
  });
}

/** The names of the namespaces that the user may see. */
export function namespacesQuery(clusterId: string) {
  return queryOptions({
    queryKey: ["kind-namespaces", clusterId],
    queryFn: async (): Promise<string[]> => {
      const path = `${kindsPath(clusterId)}/namespaces?limit=${NAMESPACES_MAX}&include=metadata.name`;
      const list = await request<KindList>("GET", path);
      return list.data.map(({ metadata }) => metadata.name);
    },
    staleTime: COUNTS_AGE_MAX_MS,
  });
}

/** A large list is read for the first time; the server asks for patience. */
export function isBeingRead(error: unknown): boolean {
  return error instanceof ApiError && error.code === "ListNotReady";
}

/** How long a large list is waited for: each attempt waits at the server, too. */
const FIRST_READ_ATTEMPTS_MAX = 20;
const FIRST_READ_PAUSE_MS = 1_000;

/** One page. `below`: namespace and query of the list, such as `/web?page=2`. */
export function kindListQuery(clusterId: string, type: string, below: string) {
  return queryOptions({
    queryKey: ["kind-list", clusterId, type, below],
    queryFn: () =>
      request<KindList>("GET", `${kindsPath(clusterId)}/${encodeURIComponent(type)}${below}`),

    retry: (failures, error) =>
      error instanceof ApiError &&
      (isBeingRead(error)
        ? failures < FIRST_READ_ATTEMPTS_MAX
        : error.status === 503 && failures < 2),
    retryDelay: FIRST_READ_PAUSE_MS,
  });
}

function objectPath(clusterId: string, type: string, id: string): string {
  const segments = [type, ...id.split("/")].map(encodeURIComponent);
  return `${kindsPath(clusterId)}/${segments.join("/")}`;
}

/** One object without its contents. */
export function kindObjectQuery(clusterId: string, type: string, id: string) {
  return queryOptions({
    queryKey: ["kind-object", clusterId, type, id, "head"],
    queryFn: () => {
      const without = "exclude=spec&exclude=status&excludeValues=data";
      return request<KindObject>("GET", `${objectPath(clusterId, type, id)}?${without}`);
    },
    retry: false,
  });
}

/** All of one object. `T`: what its kind has besides. */
export function wholeObjectQuery<T>(clusterId: string, type: string, id: string) {
  return queryOptions({
    queryKey: ["kind-object", clusterId, type, id, "whole"],
    queryFn: () => {
      const path = `${objectPath(clusterId, type, id)}?exclude=metadata.managedFields`;
      return request<KindObject & T>("GET", path);
    },
    retry: false,
  });
}

/** What ConfigMaps and Secrets hold. */
export interface DataContent {
  data?: Record<string, string>;
  binaryData?: Record<string, string>;
}

/** An object with its data. `hidden`: only the names of the data, without values. */
export function objectDataQuery(clusterId: string, type: string, id: string, hidden: boolean) {
  const without = hidden ? "&excludeValues=data&excludeValues=binaryData" : "";
  return queryOptions({
    queryKey: ["kind-object", clusterId, type, id, hidden ? "names" : "values"],
    queryFn: () => {
      const path = `${objectPath(clusterId, type, id)}?exclude=metadata.managedFields${without}`;
      return request<KindObject & DataContent>("GET", path);
    },
    retry: false,
    // Values of Secrets stay no longer than they are shown.
    gcTime: 0,
  });
}

const YAML = "application/yaml";
/** Leaves out what the view adds to an object. */
const AS_STORED = [
  ...["id", "type", "links", "actions"],
  ...["fields", "state", "relationships", "managedFields"].map((name) => `metadata.${name}`),
]
  .map((field) => `exclude=${field}`)
  .join("&");

/** The view has a type of its own, which displaces that of a Secret. */
function withOwnType(yaml: string): string {
  return yaml.replace(/^_type:/m, "type:");
}

/** An object as Kubernetes has it, in YAML. `hidden`: without the values of its data. */
export function kindYamlQuery(clusterId: string, type: string, id: string, hidden: boolean) {
  const without = hidden ? "&excludeValues=data&excludeValues=stringData" : "";
  return queryOptions({
    queryKey: ["kind-yaml", clusterId, type, id, hidden],
    queryFn: async () => {
      const path = `${objectPath(clusterId, type, id)}?${AS_STORED}${without}`;
      return withOwnType(await requestText(path, YAML));
    },
    retry: false,
    // Values of Secrets stay no longer than they are shown.
    gcTime: 0,
  });
}

/** An object in YAML as the view takes it; the opposite of {@link withOwnType}. */
function withDisplacedType(yaml: string): string {
  return yaml.replace(/^type:/m, "_type:");
}

/** A change that replaces an object by a text. */
export function replacement(yaml: string): Change {
  return { method: "PUT", type: YAML, body: withDisplacedType(yaml) };
}

/** Creates an object from YAML. `isTrial`: nothing is stored. Returns its id. */
export async function createKindObject(
  clusterId: string,
  type: string,
  yaml: string,
  isTrial: boolean,
): Promise<string> {
  const path = `${kindsPath(clusterId)}/${encodeURIComponent(type)}${isTrial ? "?dryRun=All" : ""}`;
  const change = { method: "POST", type: YAML, body: withDisplacedType(yaml) } as const;
  const made = await requestText(path, "application/json", change);
  return (JSON.parse(made) as KindObject).id;
}

/** A change that sets the given fields. */
export function mergePatch(fields: object): Change {
  return {
    method: "PATCH",
    type: "application/merge-patch+json",
    body: JSON.stringify(fields),
  };
}

/** Operations of RFC 6902, in order. */
export function jsonPatch(operations: readonly object[]): Change {
  return {
    method: "PATCH",
    type: "application/json-patch+json",
    body: JSON.stringify(operations),
  };
}

/** Changes an object. `isTrial`: nothing is stored. Returns the object as it is then, in YAML. */
export async function changeKindObject(
  clusterId: string,
  type: string,
  id: string,
  change: Change,
  isTrial = false,
): Promise<string> {
  const trial = isTrial ? "&dryRun=All" : "";
  const path = `${objectPath(clusterId, type, id)}?${AS_STORED}${trial}`;
  return withOwnType(await requestText(path, YAML, change));
}

/** Deletes an object. */
export function deleteKindObject(clusterId: string, type: string, id: string): Promise<unknown> {
  return request("DELETE", objectPath(clusterId, type, id));
}

/** Objects of some kinds whose names have a text; kinds that cannot be listed have none. */
export function objectSearchQuery(clusterId: string, types: readonly string[], text: string) {
  // Quotes and commas separate filters; no name has them.
  const part = text.replace(/[',]/g, "");
  const query = new URLSearchParams({
    filter: `metadata.name=${part}`,
    pagesize: String(FOUND_PER_KIND),
    include: "metadata",
    exclude: "metadata.managedFields",
  });
  const read = async (type: string): Promise<FoundObject[]> => {
    const path = `${kindsPath(clusterId)}/${encodeURIComponent(type)}?${query}`;
    const list = await request<KindList>("GET", path).catch(() => undefined);
    return (list?.data ?? []).map(({ id }) => ({ type, id }));
  };
  return queryOptions({
    queryKey: ["object-search", clusterId, types, part],
    queryFn: async () => (await Promise.all(types.map(read))).flat(),
    enabled: part.length >= FOUND_TEXT_MIN,
    staleTime: 10_000,
    retry: false,
  });
}

/** Kinds that are owned by others, as Kubernetes has them: their plurals. */
const OWNED_TYPES = [
  ...["pods", "apps.replicasets", "apps.controllerrevisions", "batch.jobs"],
  ...["persistentvolumeclaims", "discovery.k8s.io.endpointslices"],
];

/** How many objects of usual kinds an object owns, by plural. `kinds`: those that may be listed. */
export function ownedCountsQuery(
  clusterId: string,
  kinds: readonly KindSchema[],
  { namespace = "", uid }: KindObject["metadata"],
) {
  const types = OWNED_TYPES.filter((type) => kinds.some(({ pluralName }) => pluralName === type));
  const query = new URLSearchParams({
    ...{ filter: `metadata.ownerReferences.uid='${uid}'`, pagesize: "1" },
    include: "metadata.name",
  });
  const read = async (type: string): Promise<[string, number][]> => {
    const path = `${kindsPath(clusterId)}/${type}/${encodeURIComponent(namespace)}?${query}`;
    const list = await request<KindList>("GET", path).catch(() => undefined);
    return list?.count ? [[type, list.count]] : [];
  };
  return queryOptions({
    queryKey: ["owned-counts", clusterId, uid],
    queryFn: async () => (await Promise.all(types.map(read))).flat(),
    enabled: namespace !== "" && types.length > 0,
    gcTime: 0,
    retry: false,
  });
}

export interface FoundObject {
  /** The plural of its kind. */
  type: string;
  id: string;
}

const FOUND_PER_KIND = 4;
/** Shorter texts match too much. */
const FOUND_TEXT_MIN = 3;
