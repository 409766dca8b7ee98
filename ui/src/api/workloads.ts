/** Workloads: what they run, how many, and what they ran before. */

import { queryOptions } from "@tanstack/react-query";
import { clusterPath, request } from "./client.ts";
import type { ContainerSpec } from "./pods.ts";

/** What a workload has besides its metadata; a CronJob has other fields. */
export interface WorkloadContent {
  spec: {
    replicas?: number;
    paused?: boolean;
    /** Of a CronJob. */
    suspend?: boolean;
    selector?: LabelSelector;
    template?: PodTemplate;
  };
  status?: { readyReplicas?: number };
}

export interface PodTemplate {
  metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> };
  spec: { containers: ContainerSpec[]; initContainers?: ContainerSpec[] };
}

export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

export interface OwnedMeta {
  name: string;
  creationTimestamp?: string;
  annotations?: Record<string, string>;
  ownerReferences?: { uid: string; controller?: boolean }[];
}

/** What a Deployment ran at a time. */
export interface ReplicaSet {
  metadata: OwnedMeta;
  spec: { replicas?: number; template: PodTemplate };
}

/** What a StatefulSet or DaemonSet ran at a time: `data` is a patch of its object. */
export interface ControllerRevision {
  metadata: OwnedMeta;
  revision: number;
  data?: { spec?: { template?: PodTemplate } };
}

/** The ReplicaSets of a namespace that match, with those of other owners. */
export function replicaSetsQuery(clusterId: string, namespace: string, selector: string) {
  return ownedQuery<ReplicaSet>(clusterId, namespace, "replicasets", selector);
}

/** The ControllerRevisions of a namespace that match, with those of other owners. */
export function controllerRevisionsQuery(clusterId: string, namespace: string, selector: string) {
  return ownedQuery<ControllerRevision>(clusterId, namespace, "controllerrevisions", selector);
}

function ownedQuery<T>(clusterId: string, namespace: string, resource: string, selector: string) {
  const query = new URLSearchParams({ labelSelector: selector });
  const path = `namespaces/${encodeURIComponent(namespace)}/${resource}?${query}`;
  return queryOptions({
    queryKey: ["kind-list", clusterId, `apps.${resource}`, path],
    queryFn: async (): Promise<T[]> => {
      const list = await request<{ items: T[] }>(
        "GET",
        `${clusterPath(clusterId)}/apis/apps/v1/${path}`,
      );
      return list.items;
    },
    retry: false,
  });
}
