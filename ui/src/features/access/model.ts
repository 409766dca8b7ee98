/** Explanations of rights, in the words of the page. */

import type { AccessQuestion, AccessWay, Named, RbacRule } from "../../api/types.ts";

/** The parts of `deployments.apps/scale`; a path begins with a slash. */
export function resourceParts(
  text: string,
): Pick<AccessQuestion, "resource" | "group" | "subresource" | "path"> {
  if (text.startsWith("/")) return { resource: "", group: "", subresource: "", path: text };
  const [kind = "", ...rest] = text.split("/");
  const [resource = "", ...group] = kind.split(".");
  return { resource, group: group.join("."), subresource: rest.join("/"), path: "" };
}

/** A rule in one line: verbs, then resources. */
export function ruleWords(rule: RbacRule): string {
  const on = (rule.resources ?? rule.nonResourceURLs ?? []).join(", ");
  const groups = (rule.apiGroups ?? []).filter(Boolean).join(", ");
  const names = (rule.resourceNames ?? []).join(", ");
  const of = groups && ` of ${groups}`;
  return `${rule.verbs.join(", ")} on ${on}${of}${names && ` named ${names}`}`;
}

/** Whom a binding names. */
export function subjectWords({ kind, namespace, name }: Named): string {
  const word = { User: "user", Group: "group", ServiceAccount: "service account" }[kind] ?? kind;
  return `${word} ${namespace ? `${namespace}/` : ""}${name}`;
}

/** The steps of one way, from the binding in Drover to the rule in the cluster. */
export function steps(way: AccessWay): string[] {
  const given = (way.from ?? []).map(({ kind, namespace, name, throughGroup, roles }) => {
    const through = throughGroup ? `, through the group ${throughGroup}` : "";
    const inherited = roles.length > 1 ? ` (${roles.join(" → ")})` : "";
    const binding = `${kind} ${namespace ? `${namespace}/` : ""}${name}`;
    return `${binding} gives the role ${roles[0]}${inherited}${through}`;
  });
  const { binding, role, subject, rule } = way;
  return [
    ...given,
    `${binding.kind} ${binding.name} gives ${role.kind} ${role.name} to the ${subjectWords(subject)}`,
    `its rule allows ${ruleWords(rule)}`,
  ];
}
