/** What belongs together in a namespace: ingresses, services, workloads and pods. Pure. */

import type { KindObject } from "../../api/kinds.ts";
import type { LabelSelector, PodTemplate } from "../../api/workloads.ts";

/** The columns of the map, from outside to inside. */
export const LEVELS = ["ingresses", "services", "workloads", "pods"] as const;
type Level = (typeof LEVELS)[number];

interface Labelled {
  metadata: { labels?: Record<string, string> };
}
export type MapIngress = KindObject & {
  spec?: {
    defaultBackend?: IngressBackend;
    rules?: { http?: { paths?: { backend?: IngressBackend }[] } }[];
  };
};
interface IngressBackend {
  service?: { name?: string };
}
export type MapService = KindObject & { spec?: { selector?: Record<string, string> } };
export type MapWorkload = KindObject & {
  spec?: { selector?: LabelSelector; template?: PodTemplate };
};
export type MapPod = KindObject & Labelled;

/** All of a namespace. */
export interface Surroundings {
  ingresses: readonly MapIngress[];
  services: readonly MapService[];
  workloads: readonly MapWorkload[];
  pods: readonly MapPod[];
}

export interface MapNode {
  /** The object's uid. */
  key: string;
  object: KindObject;
}

export interface BelongingMap {
  columns: Record<Level, MapNode[]>;
  /** Keys of two nodes of neighbouring columns, or of a service and a pod. */
  edges: [string, string][];
  /** Pods that are not shown. */
  morePods: number;
}

/** Most pods on a map. */
export const PODS_SHOWN = 12;

/** Whether labels fulfil a selector; an empty one selects nothing here. */
export function selects(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  labels: Record<string, string>,
): boolean {
  const pairs = Object.entries(matchLabels);
  if (pairs.length + matchExpressions.length === 0) return false;
  return (
    pairs.every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => {
      const value = labels[key];
      switch (operator) {
        case "In":
          return value !== undefined && values.includes(value);
        case "NotIn":
          return value === undefined || !values.includes(value);
        case "Exists":
          return value !== undefined;
        case "DoesNotExist":
          return value === undefined;
        default:
          return false;
      }
    })
  );
}

/** Names of the services that an ingress leads to. */
function backends({ spec }: MapIngress): Set<string> {
  const paths = (spec?.rules ?? []).flatMap(({ http }) => http?.paths ?? []);
  const all = [spec?.defaultBackend, ...paths.map(({ backend }) => backend)];
  return new Set(all.flatMap((backend) => backend?.service?.name ?? []));
}

/** All connections of a namespace, from outside to inside. */
function connections({ ingresses, services, workloads, pods }: Surroundings): [string, string][] {
  const key = ({ metadata }: KindObject) => metadata.uid;
  const edges: [string, string][] = [];
  for (const ingress of ingresses) {
    const names = backends(ingress);
    for (const service of services) {
      if (names.has(service.metadata.name)) edges.push([key(ingress), key(service)]);
    }
  }
  const owned = new Set<string>();
  for (const workload of workloads) {
    for (const pod of pods) {
      if (!selects(workload.spec?.selector ?? {}, pod.metadata.labels ?? {})) continue;
      edges.push([key(workload), key(pod)]);
      owned.add(key(pod));
    }
  }
  for (const service of services) {
    const selector = { matchLabels: service.spec?.selector ?? {} };
    for (const workload of workloads) {
      const labels = workload.spec?.template?.metadata?.labels ?? {};
      if (selects(selector, labels)) edges.push([key(service), key(workload)]);
    }
    for (const pod of pods) {
      // Pods of workloads are reached through these.
      if (!owned.has(key(pod)) && selects(selector, pod.metadata.labels ?? {})) {
        edges.push([key(service), key(pod)]);
      }
    }
  }
  return edges;
}

/** Everything that is reached from `start` along `edges`, in their direction. */
function reached(start: string, edges: readonly [string, string][]): Set<string> {
  const found = new Set([start]);
  for (const one of found) {
    for (const [from, to] of edges) if (from === one) found.add(to);
  }
  return found;
}

/** What leads to the object with the uid `start`, and what it leads to. */
export function belongings(surroundings: Surroundings, start: string): BelongingMap {
  const all = connections(surroundings);
  const inward = reached(start, all);
  const outward = reached(
    start,
    all.map(([from, to]) => [to, from]),
  );
  const isShown = ({ metadata }: KindObject) =>
    inward.has(metadata.uid) || outward.has(metadata.uid);
  const nodes = (objects: readonly KindObject[]) =>
    objects.filter(isShown).map((object) => ({ key: object.metadata.uid, object }));
  const pods = nodes(surroundings.pods);
  const columns = {
    ingresses: nodes(surroundings.ingresses),
    services: nodes(surroundings.services),
    workloads: nodes(surroundings.workloads),
    pods: pods.slice(0, PODS_SHOWN),
  };
  const shown = new Set(LEVELS.flatMap((level) => columns[level].map(({ key }) => key)));
  const edges = all.filter(([from, to]) => shown.has(from) && shown.has(to));
  return { columns, edges, morePods: pods.length - columns.pods.length };
}
