/** What the pages of projects show. Pure. */

import type { Namespace, Project } from "../../api/projects.ts";
import type { Quantities, Resource } from "../../api/types.ts";
import { bytes, cores, count, parse } from "../../lib/quantity.ts";
import type { Tone } from "../../ui/StateMark.tsx";

/** A limit that projects can have. */
export interface QuotaField {
  /** As in `/v3`. */
  name: string;
  text: string;
  unit: "cores" | "bytes" | "number";
  placeholder: string;
}

export const QUOTA_FIELDS: readonly QuotaField[] = [
  { name: "limitsCpu", text: "CPU limits", unit: "cores", placeholder: "4000m" },
  { name: "requestsCpu", text: "CPU requests", unit: "cores", placeholder: "2000m" },
  { name: "limitsMemory", text: "Memory limits", unit: "bytes", placeholder: "8Gi" },
  { name: "requestsMemory", text: "Memory requests", unit: "bytes", placeholder: "4Gi" },
  { name: "requestsStorage", text: "Storage requests", unit: "bytes", placeholder: "100Gi" },
  { name: "pods", text: "Pods", unit: "number", placeholder: "50" },
  { name: "services", text: "Services", unit: "number", placeholder: "20" },
  { name: "servicesLoadBalancers", text: "Load balancers", unit: "number", placeholder: "2" },
  { name: "servicesNodePorts", text: "Node ports", unit: "number", placeholder: "5" },
  { name: "persistentVolumeClaims", text: "Volume claims", unit: "number", placeholder: "10" },
  { name: "configMaps", text: "ConfigMaps", unit: "number", placeholder: "100" },
  { name: "secrets", text: "Secrets", unit: "number", placeholder: "100" },
  {
    name: "replicationControllers",
    text: "Replication controllers",
    unit: "number",
    placeholder: "5",
  },
];

export interface QuotaUse {
  field: QuotaField;
  /** As stored. */
  limit: string;
  /** What the namespaces have of it, such as `2 of 4 cores`. */
  text: string;
  /** 0 to 100 and above; nothing if it is not known. */
  percent: number | undefined;
}

/** The limits of a project that are set, with what its namespaces have of them. */
export function quotaUses({ resourceQuota }: Project): QuotaUse[] {
  const { limit, usedLimit } = resourceQuota ?? {};
  return QUOTA_FIELDS.flatMap((field) => {
    const most = limit?.[field.name];
    if (!most) return [];
    const all = parse(most);
    const used = parse(usedLimit?.[field.name] ?? "0");
    const text = `${amount(field, used, "0")} of ${amount(field, all, most)}`;
    const percent = all && used !== undefined ? (100 * used) / all : undefined;
    return [{ field, limit: most, text, percent }];
  });
}

function amount({ unit }: QuotaField, number: number | undefined, raw: string): string {
  if (number === undefined) return raw;
  return { cores, bytes, number: count }[unit](number);
}

/** The limits of a form; empty fields are none. */
export function quotaOf(data: FormData, prefix: string): Quantities {
  const given = QUOTA_FIELDS.map(({ name }) => [
    name,
    String(data.get(prefix + name) ?? "").trim(),
  ]);
  return Object.fromEntries(given.filter(([, value]) => value));
}

/** Namespaces of a project, by name. */
export function namespacesOf(
  namespaces: readonly Namespace[],
  projectId: string | undefined,
): Namespace[] {
  return namespaces
    .filter((namespace) => (namespace.projectId || undefined) === projectId)
    .sort((one, other) => one.name.localeCompare(other.name));
}

/** The part of a project's id after its cluster's, for addresses. */
export function shortId({ id }: Project): string {
  return id.split(":").at(-1) ?? id;
}

/** Whether Drover made the project with the cluster. */
export function isBuiltIn({ labels }: Project): boolean {
  const made = ["default-project", "system-project"].map(
    (name) => `authz.management.cattle.io/${name}`,
  );
  return made.some((label) => labels?.[label] === "true");
}

/** The meaning of the state of a resource of `/v3`. */
export function resourceTone({ state, transitioning }: Resource): Tone {
  if (transitioning === "error") return "err";
  if (state === "removing") return "rem";
  return transitioning === "yes" ? "run" : "ok";
}

/** The state's word. */
export function resourceWord({ state = "active" }: Resource): string {
  return state.charAt(0).toUpperCase() + state.slice(1);
}
