/** What the lists of objects show: usual kinds, columns, states. Pure. */

import type { KindColumn, KindObject, KindSchema } from "../../api/kinds.ts";
import type { Tone } from "../../ui/StateMark.tsx";

/** A kind that has an entry of its own in the sidebar. */
export interface UsualKind {
  /** As in addresses. */
  plural: string;
  id: string;
  text: string;
  group: "" | "Workloads" | "Network" | "Storage" | "Config";
}

export const USUAL_KINDS: readonly UsualKind[] = [
  { plural: "namespaces", id: "namespace", text: "Namespaces", group: "" },
  { plural: "events", id: "event", text: "Events", group: "" },
  { plural: "apps.deployments", id: "apps.deployment", text: "Deployments", group: "Workloads" },
  { plural: "apps.statefulsets", id: "apps.statefulset", text: "StatefulSets", group: "Workloads" },
  { plural: "apps.daemonsets", id: "apps.daemonset", text: "DaemonSets", group: "Workloads" },
  { plural: "batch.jobs", id: "batch.job", text: "Jobs", group: "Workloads" },
  { plural: "batch.cronjobs", id: "batch.cronjob", text: "CronJobs", group: "Workloads" },
  { plural: "pods", id: "pod", text: "Pods", group: "Workloads" },
  { plural: "services", id: "service", text: "Services", group: "Network" },
  {
    plural: "networking.k8s.io.ingresses",
    id: "networking.k8s.io.ingress",
    text: "Ingresses",
    group: "Network",
  },
  {
    plural: "persistentvolumeclaims",
    id: "persistentvolumeclaim",
    text: "Volume claims",
    group: "Storage",
  },
  { plural: "persistentvolumes", id: "persistentvolume", text: "Volumes", group: "Storage" },
  { plural: "configmaps", id: "configmap", text: "ConfigMaps", group: "Config" },
  { plural: "secrets", id: "secret", text: "Secrets", group: "Config" },
];

/** The words for a kind: those of the sidebar, else its own name. */
export function kindText(type: string, schema: KindSchema | undefined): string {
  const usual = USUAL_KINDS.find(({ plural, id }) => plural === type || id === type);
  return usual?.text ?? schema?.attributes.kind ?? type;
}

/** The schema of a type, by its id or plural. */
export function schemaOf(kinds: readonly KindSchema[], type: string): KindSchema | undefined {
  return kinds.find(({ id, pluralName }) => id === type || pluralName === type);
}

/** What a new object begins with. */
export function firstYaml(
  { attributes: { group, version, kind, namespaced } }: KindSchema,
  namespace = "default",
): string {
  return [
    `apiVersion: ${group ? `${group}/` : ""}${version}`,
    `kind: ${kind}`,
    "metadata:",
    "  name: ",
    ...(namespaced ? [`  namespace: ${namespace}`] : []),
    "",
  ].join("\n");
}

/** A column of the table, besides state, name, namespace and age. */
export interface ShownColumn {
  name: string;
  /** Index in `metadata.fields`. */
  index: number;
  isNumber: boolean;
}

/** More columns are on the page of the object. */
const COLUMNS_MAX = 6;
const OWN_COLUMNS = ["name", "namespace", "age", "status"];

/** All columns of the cluster, without those that each list has. */
export function offeredColumns(type: string, columns: readonly KindColumn[]): ShownColumn[] {
  return columns.flatMap(({ name, type: of }, index): ShownColumn[] => {
    const word = name.toLowerCase();
    // What a pod has there is its state.
    const isOwn = word === "status" ? type.startsWith("pod") : OWN_COLUMNS.includes(word);
    return isOwn ? [] : [{ name, index, isNumber: of === "integer" || of === "number" }];
  });
}

/** The chosen columns; without a choice those that the cluster prints for everybody. */
export function shownColumns(
  type: string,
  columns: readonly KindColumn[],
  chosen?: readonly string[],
): ShownColumn[] {
  const offered = offeredColumns(type, columns);
  if (chosen) return offered.filter(({ name }) => chosen.includes(name));
  const usual = offered.filter(({ index }) => (columns[index]?.priority ?? 0) <= 0);
  return usual.slice(0, COLUMNS_MAX);
}

/** Those that the user may delete. */
export function deletable(objects: readonly KindObject[]): KindObject[] {
  return objects.filter(({ links }) => links.remove);
}

/** The value of a column as text. */
export function cellText(object: KindObject, index: number): string {
  const value = object.metadata.fields?.[index];
  if (value === undefined || value === null || value === "") return "—";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const FAILED = /backoff|err|fail|evict|oomkilled|invalid|unknown|notready|lost/;
const FINE = /^(active|running|ready|bound|available|normal|established|approved)/;
const DONE = /^(succeeded|complete)/;
const STARTING = /creating|init|pulling|progress|updating|provision/;

/** The meaning of an object's state. */
export function objectTone({ metadata }: KindObject): Tone {
  const { state } = metadata;
  const name = state?.name ?? "";
  if (metadata.deletionTimestamp || /^(removing|terminating)/.test(name)) return "rem";
  if (state?.error || FAILED.test(name)) return "err";
  if (DONE.test(name)) return "done";
  if (FINE.test(name)) return "ok";
  return state?.transitioning || STARTING.test(name) ? "run" : "wait";
}

/** The word of an object's state. A pod has the one that `kubectl get` prints. */
export function objectWord(object: KindObject): string {
  const { state, fields } = object.metadata;
  const printed = object.type === "pod" ? fields?.[2] : undefined;
  if (typeof printed === "string" && printed) return printed;
  const name = (state?.name ?? "unknown").replaceAll("-", " ");
  return name.charAt(0).toUpperCase() + name.slice(1);
}
