/** Rules of a role as lines of a form: each field is a text with commas. Pure. */

import type { RbacRule } from "../../api/types.ts";

/** A rule about resources, or about paths that are none. */
export interface RuleLine {
  verbs: string;
  resources: string;
  apiGroups: string;
  resourceNames: string;
  paths: string;
}

export const NEW_LINE: RuleLine = {
  ...{ verbs: "get, list, watch", resources: "", apiGroups: "core" },
  ...{ resourceNames: "", paths: "" },
};

/** What the form calls the API group without a name. */
const CORE = "core";

export function lineOf(rule: RbacRule): RuleLine {
  const text = (values: readonly string[] | undefined) => (values ?? []).join(", ");
  return {
    verbs: text(rule.verbs),
    resources: text(rule.resources),
    apiGroups: text(rule.apiGroups?.map((group) => group || CORE)),
    resourceNames: text(rule.resourceNames),
    paths: text(rule.nonResourceURLs),
  };
}

export function ruleOf(line: RuleLine): RbacRule {
  const verbs = words(line.verbs);
  const paths = words(line.paths);
  if (paths.length > 0) return { verbs, nonResourceURLs: paths };
  const names = words(line.resourceNames);
  return {
    verbs,
    resources: words(line.resources),
    apiGroups: words(line.apiGroups).map((group) => (group === CORE ? "" : group)),
    ...(names.length > 0 && { resourceNames: names }),
  };
}

/** What is missing in a line; nothing if it is a rule. */
export function lineProblem(line: RuleLine): string | undefined {
  if (words(line.verbs).length === 0) return "A rule needs verbs, such as get, list.";
  const paths = words(line.paths);
  if (paths.length > 0) {
    const isBoth = words(line.resources).length > 0;
    if (isBoth) return "A rule is about resources or about paths: use two rules.";
    return paths.every((path) => path.startsWith("/") || path === "*")
      ? undefined
      : "A path begins with a slash.";
  }
  if (words(line.resources).length === 0) return "A rule needs resources, such as pods.";
  if (words(line.apiGroups).length === 0) return "A rule needs API groups: core, apps or *.";
  return undefined;
}

function words(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}
