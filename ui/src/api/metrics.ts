/** What nodes and pods use now, where a cluster serves `metrics.k8s.io`. */

import { queryOptions, useQuery } from "@tanstack/react-query";
import { parse } from "../lib/quantity.ts";
import { clusterPath, request } from "./client.ts";
import { kindsQuery } from "./kinds.ts";
import { type PodKey, podsPath } from "./pods.ts";

/** Clusters measure every 15 to 60 seconds. */
const EVERY_MS = 15_000;

interface MeasuredUse {
  cpu?: string;
  memory?: string;
}

export interface Use {
  /** Cores. */
  cpu: number | undefined;
  /** Bytes. */
  memory: number | undefined;
}

/**
 * Use of each node, by its name; nothing where it is not measured or may not be seen. `isReachable`:
 * whether the cluster answers now.
 */
export function useNodeUse(clusterId: string, isReachable: boolean): ReadonlyMap<string, Use> {
  const enabled = useServed(clusterId, "nodes", isReachable);
  const { data } = useQuery({ ...nodeUseQuery(clusterId), enabled });
  return data ?? NOTHING;
}

/** Use of each container of a pod, by its name; nothing where it is not measured. */
export function usePodUse(pod: PodKey): ReadonlyMap<string, Use> {
  const enabled = useServed(pod.clusterId, "pods", true);
  const { data } = useQuery({ ...podUseQuery(pod), enabled });
  return data ?? NOTHING;
}

const NOTHING: ReadonlyMap<string, Use> = new Map();

function useServed(clusterId: string, plural: string, isReachable: boolean): boolean {
  const { data: kinds = [] } = useQuery({ ...kindsQuery(clusterId), enabled: isReachable });
  return isReachable && kinds.some(({ pluralName }) => pluralName === `metrics.k8s.io.${plural}`);
}

const METRICS = "apis/metrics.k8s.io/v1beta1";

function nodeUseQuery(clusterId: string) {
  return queryOptions({
    queryKey: ["node-use", clusterId],
    queryFn: async (): Promise<ReadonlyMap<string, Use>> => {
      const path = `${clusterPath(clusterId)}/${METRICS}/nodes`;
      const { items } = await request<{
        items: { metadata: { name: string }; usage: MeasuredUse }[];
      }>("GET", path);
      return new Map(items.map(({ metadata, usage }) => [metadata.name, use(usage)]));
    },
    refetchInterval: EVERY_MS,
    retry: false,
  });
}

function podUseQuery(pod: PodKey) {
  return queryOptions({
    queryKey: ["pod-use", pod],
    queryFn: async (): Promise<ReadonlyMap<string, Use>> => {
      // A new pod is not measured yet: it is missing in a list, and would be an error by itself.
      const selection = new URLSearchParams({ fieldSelector: `metadata.name=${pod.name}` });
      const { items } = await request<{
        items: {
          metadata: { name: string };
          containers: { name: string; usage: MeasuredUse }[];
        }[];
      }>("GET", `${podsPath(pod, METRICS)}?${selection}`);
      const measured = items.find(({ metadata }) => metadata.name === pod.name);
      return new Map(measured?.containers.map(({ name, usage }) => [name, use(usage)]));
    },
    refetchInterval: EVERY_MS,
    retry: false,
  });
}

function use({ cpu, memory }: MeasuredUse): Use {
  return { cpu: parse(cpu), memory: parse(memory) };
}
