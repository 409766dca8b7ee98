/** Pods: what they contain, their logs, and programs in their containers. */

import { clusterPath, socketUrl } from "./client.ts";

export interface ContainerSpec {
  name: string;
  image: string;
  ports?: { containerPort: number; protocol?: string; name?: string }[];
}

export interface ContainerState {
  running?: { startedAt?: string };
  waiting?: { reason?: string; message?: string };
  terminated?: { reason?: string; message?: string; exitCode: number; finishedAt?: string };
}

export interface ContainerStatus {
  name: string;
  ready: boolean;
  restartCount: number;
  state?: ContainerState;
  lastState?: ContainerState;
}

/** What a pod has besides its metadata. */
export interface PodContent {
  spec: {
    nodeName?: string;
    serviceAccountName?: string;
    containers: ContainerSpec[];
    initContainers?: ContainerSpec[];
    ephemeralContainers?: ContainerSpec[];
  };
  status?: {
    podIP?: string;
    hostIP?: string;
    qosClass?: string;
    containerStatuses?: ContainerStatus[];
    initContainerStatuses?: ContainerStatus[];
    ephemeralContainerStatuses?: ContainerStatus[];
  };
}

/** A pod, by its place. */
export interface PodKey {
  clusterId: string;
  namespace: string;
  name: string;
}

export interface LogOptions {
  container: string;
  /** The log of the container before its last restart. */
  previous?: boolean;
  follow?: boolean;
  /** At most so many lines, the newest. */
  tailLines?: number;
  /** Lines since then, by RFC 3339. The cluster ignores parts of seconds. */
  sinceTime?: string | undefined;
  /** Lines that are at most so old. */
  sinceSeconds?: number | undefined;
  timestamps?: boolean;
}

/** The path of a namespace's pods in an API of its cluster: the core API, or one about pods. */
export function podsPath(
  { clusterId, namespace }: Pick<PodKey, "clusterId" | "namespace">,
  api = "api/v1",
): string {
  return `${clusterPath(clusterId)}/${api}/namespaces/${encodeURIComponent(namespace)}/pods`;
}

function podPath(pod: PodKey): string {
  return `${podsPath(pod)}/${encodeURIComponent(pod.name)}`;
}

/** The path of a container's log. */
export function logPath(pod: PodKey, options: LogOptions): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined && value !== false) query.set(name, String(value));
  }
  return `${podPath(pod)}/log?${query}`;
}

/** The URL of a socket to a program in a container, which gets a terminal. */
export function execUrl(pod: PodKey, container: string, command: readonly string[]): string {
  const query = new URLSearchParams({ container, stdin: "true", stdout: "true", tty: "true" });
  for (const word of command) query.append("command", word);
  return socketUrl(`${podPath(pod)}/exec?${query}`);
}

/** The URL of a socket to a program in a container, without a terminal. */
export function programUrl(
  pod: PodKey,
  container: string,
  command: readonly string[],
  hasInput: boolean,
): string {
  const streams = { stdin: String(hasInput), stdout: "true", stderr: "true" };
  const query = new URLSearchParams({ container, ...streams });
  for (const word of command) query.append("command", word);
  return socketUrl(`${podPath(pod)}/exec?${query}`);
}
