/** What can be done with a workload, and what it ran before. Pure. */

import type { Change } from "../../api/client.ts";
import { jsonPatch, mergePatch } from "../../api/kinds.ts";
import type {
  ControllerRevision,
  LabelSelector,
  OwnedMeta,
  PodTemplate,
  ReplicaSet,
  WorkloadContent,
} from "../../api/workloads.ts";

export interface WorkloadKind {
  /** As in addresses. */
  plural: string;
  id: string;
  canScale?: boolean;
  /** Its pods come from a template, which can be rolled out again. */
  canRestart?: boolean;
  canPause?: boolean;
  canSuspend?: boolean;
  /** Where its earlier templates are. */
  history?: "replicasets" | "controllerrevisions";
}

const KINDS: readonly WorkloadKind[] = [
  {
    ...{ plural: "apps.deployments", id: "apps.deployment" },
    ...{ canScale: true, canRestart: true, canPause: true, history: "replicasets" },
  },
  {
    ...{ plural: "apps.statefulsets", id: "apps.statefulset" },
    ...{ canScale: true, canRestart: true, history: "controllerrevisions" },
  },
  {
    ...{ plural: "apps.daemonsets", id: "apps.daemonset" },
    ...{ canRestart: true, history: "controllerrevisions" },
  },
  { plural: "apps.replicasets", id: "apps.replicaset", canScale: true },
  { plural: "batch.jobs", id: "batch.job" },
  { plural: "batch.cronjobs", id: "batch.cronjob", canSuspend: true },
];

/** The workload that a type is, by its id or plural. */
export function workloadKind(type: string): WorkloadKind | undefined {
  return KINDS.find(({ plural, id }) => plural === type || id === type);
}

/** A selector as text, as Kubernetes reads it in requests. */
export function selectorText({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string {
  const labels = Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`);
  const expressions = matchExpressions.map(({ key, operator, values = [] }) => {
    const list = `(${values.join(",")})`;
    return (
      {
        In: `${key} in ${list}`,
        NotIn: `${key} notin ${list}`,
        Exists: key,
        DoesNotExist: `!${key}`,
      }[operator] ?? key
    );
  });
  return [...labels, ...expressions].join(",");
}

/** Annotation that `kubectl rollout restart` sets. */
const RESTARTED = "kubectl.kubernetes.io/restartedAt";
/** Numbers the ReplicaSets of a Deployment. */
const REVISION = "deployment.kubernetes.io/revision";
/** What is said of a change by `kubectl annotate`. */
const CAUSE = "kubernetes.io/change-cause";
/** Of the ReplicaSet alone. */
const TEMPLATE_HASH = "pod-template-hash";

export function scaled(replicas: number): Change {
  return mergePatch({ spec: { replicas } });
}

export function paused(paused: boolean): Change {
  return mergePatch({ spec: { paused } });
}

export function suspended(suspend: boolean): Change {
  return mergePatch({ spec: { suspend } });
}

/** New pods replace all others, as the workload's strategy says. */
export function restarted(now: Date): Change {
  const annotations = { [RESTARTED]: now.toISOString() };
  return mergePatch({ spec: { template: { metadata: { annotations } } } });
}

/** Containers run other images; `images`: by name of the container. */
export function withImages(template: PodTemplate, images: ReadonlyMap<string, string>): Change {
  const operations = (["containers", "initContainers"] as const).flatMap((list) =>
    (template.spec[list] ?? []).flatMap(({ name, image }, index) => {
      const changed = images.get(name) ?? image;
      if (changed === image) return [];
      const path = `/spec/template/spec/${list}/${index}`;
      return [
        // If the containers have changed since, nothing does.
        { op: "test", path: `${path}/name`, value: name },
        { op: "replace", path: `${path}/image`, value: changed },
      ];
    }),
  );
  return jsonPatch(operations);
}

/** An earlier template of a workload. */
export interface WorkloadRevision {
  number: number;
  isCurrent: boolean;
  created: string | undefined;
  /** What was said of the change. */
  cause: string | undefined;
  images: string[];
  template: PodTemplate;
}

/** The revisions of a Deployment, the newest first. */
export function deploymentRevisions(uid: string, sets: readonly ReplicaSet[]): WorkloadRevision[] {
  const owned = sets.filter(({ metadata }) => isOwned(metadata, uid));
  return newestFirst(
    owned.map(({ metadata, spec }) => ({
      number: Number(metadata.annotations?.[REVISION] ?? 0),
      ...common(metadata, spec.template),
    })),
  );
}

/** The revisions of a StatefulSet or DaemonSet, the newest first. */
export function controllerRevisions(
  uid: string,
  revisions: readonly ControllerRevision[],
): WorkloadRevision[] {
  const owned = revisions.filter(({ metadata }) => isOwned(metadata, uid));
  return newestFirst(
    owned.flatMap(({ metadata, revision, data }) => {
      const template = data?.spec?.template;
      return template ? [{ number: revision, ...common(metadata, template) }] : [];
    }),
  );
}

/** The workload gets an earlier template. */
export function rolledBack({ template }: WorkloadRevision): Change {
  return jsonPatch([{ op: "replace", path: "/spec/template", value: withoutHash(template) }]);
}

function common(metadata: OwnedMeta, template: PodTemplate) {
  const { containers, initContainers = [] } = template.spec;
  return {
    isCurrent: false,
    created: metadata.creationTimestamp,
    cause: metadata.annotations?.[CAUSE],
    images: [...containers, ...initContainers].map(({ image }) => image),
    template,
  };
}

function isOwned({ ownerReferences = [] }: OwnedMeta, uid: string): boolean {
  return ownerReferences.some((owner) => owner.uid === uid && owner.controller);
}

function newestFirst(revisions: WorkloadRevision[]): WorkloadRevision[] {
  const sorted = revisions.sort((one, other) => other.number - one.number);
  return sorted.map((revision, index) => ({ ...revision, isCurrent: index === 0 }));
}

/** ReplicaSets add a label by which they find their pods; `$patch` is not of the template. */
function withoutHash(template: PodTemplate): PodTemplate {
  const { [TEMPLATE_HASH]: _, ...labels } = template.metadata?.labels ?? {};
  const { $patch: __, ...own } = template as PodTemplate & { $patch?: string };
  return { ...own, metadata: { ...template.metadata, labels } };
}

/** One line about a workload: how many of its pods are ready. */
export function readiness({ spec, status }: WorkloadContent): string | undefined {
  if (spec.suspend) return "suspended";
  if (spec.replicas === undefined) return undefined;
  const ready = `${status?.readyReplicas ?? 0} of ${spec.replicas} ready`;
  return spec.paused ? `${ready}, paused` : ready;
}
