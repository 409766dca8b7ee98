/** What the page of a pod shows of its containers. Pure. */

import type { ContainerSpec, ContainerState, ContainerStatus, PodContent } from "../../api/pods.ts";
import type { Tone } from "../../ui/StateMark.tsx";

export interface PodContainer {
  name: string;
  image: string;
  /** `init` containers run before the others, `ephemeral` ones were added for debugging. */
  role: "init" | "main" | "ephemeral";
  tone: Tone;
  /** What it does, in Kubernetes' words. */
  word: string;
  /** Why, if Kubernetes says more. */
  reason: string | undefined;
  restarts: number;
  /** When it began to run or ended. */
  since: string | undefined;
  /** Such as `8080/TCP http`. */
  ports: string[];
  isRunning: boolean;
}

/** The containers of a pod: those that it is for first. */
export function containersOf({ spec, status }: PodContent): PodContainer[] {
  const of = (role: PodContainer["role"], specs?: ContainerSpec[], states?: ContainerStatus[]) =>
    (specs ?? []).map((one) =>
      container(
        role,
        one,
        states?.find(({ name }) => name === one.name),
      ),
    );
  return [
    ...of("main", spec.containers, status?.containerStatuses),
    ...of("init", spec.initContainers, status?.initContainerStatuses),
    ...of("ephemeral", spec.ephemeralContainers, status?.ephemeralContainerStatuses),
  ];
}

function container(
  role: PodContainer["role"],
  spec: ContainerSpec,
  status: ContainerStatus | undefined,
): PodContainer {
  const state = status?.state ?? {};
  return {
    name: spec.name,
    image: spec.image,
    role,
    restarts: status?.restartCount ?? 0,
    ports: (spec.ports ?? []).map(({ containerPort, protocol = "TCP", name }) =>
      [`${containerPort}/${protocol}`, name].filter(Boolean).join(" "),
    ),
    isRunning: state.running !== undefined,
    ...meaning(role, state, status),
  };
}

type Meaning = Pick<PodContainer, "tone" | "word" | "reason" | "since">;

function meaning(
  role: PodContainer["role"],
  { running, waiting, terminated }: ContainerState,
  status: ContainerStatus | undefined,
): Meaning {
  if (running) {
    const ready = status?.ready || role === "ephemeral";
    return {
      tone: ready ? "ok" : "run",
      word: ready ? "Running" : "Not ready",
      reason: ready ? undefined : "It runs, but its readiness probe has not succeeded.",
      since: running.startedAt,
    };
  }
  if (terminated) {
    const failed = terminated.exitCode !== 0;
    return {
      tone: failed ? "err" : "done",
      word: terminated.reason || (failed ? "Failed" : "Completed"),
      reason: terminated.message || (failed ? `It ended with ${terminated.exitCode}.` : undefined),
      since: terminated.finishedAt,
    };
  }
  const word = waiting?.reason || "Waiting";
  const last = status?.lastState?.terminated;
  const before =
    last && `Its last run ended with ${last.exitCode}${last.reason ? ` (${last.reason})` : ""}.`;
  return {
    tone: /Err|BackOff|Invalid/.test(word) ? "err" : "wait",
    word,
    reason: [waiting?.message, before].filter(Boolean).join(" ") || undefined,
    since: undefined,
  };
}
