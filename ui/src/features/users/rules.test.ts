import { expect, test } from "vitest";
import { lineOf, lineProblem, NEW_LINE, ruleOf } from "./rules.ts";

test("a rule is a line of a form and back", () => {
  for (const rule of [
    { verbs: ["get", "list"], resources: ["pods", "pods/log"], apiGroups: ["", "apps"] },
    { verbs: ["*"], resources: ["secrets"], apiGroups: ["*"], resourceNames: ["one"] },
    { verbs: ["get"], nonResourceURLs: ["/metrics", "/healthz/*"] },
  ]) {
    const line = lineOf(rule);
    expect(lineProblem(line)).toBeUndefined();
    expect(ruleOf(line)).toEqual(rule);
  }
  expect(lineOf({ verbs: ["get"], resources: ["pods"], apiGroups: [""] }).apiGroups).toBe("core");
});

test("a line that is no rule says what is missing", () => {
  expect(lineProblem(NEW_LINE)).toContain("resources");
  expect(lineProblem({ ...NEW_LINE, resources: "pods", verbs: " ," })).toContain("verbs");
  expect(lineProblem({ ...NEW_LINE, resources: "pods", apiGroups: "" })).toContain("API groups");
  expect(lineProblem({ ...NEW_LINE, resources: "pods", paths: "/x" })).toContain("two rules");
  expect(lineProblem({ ...NEW_LINE, paths: "healthz" })).toContain("slash");
});
