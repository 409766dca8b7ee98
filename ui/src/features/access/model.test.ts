import { expect, test } from "vitest";
import type { AccessWay } from "../../api/types.ts";
import { resourceParts, ruleWords, steps } from "./model.ts";

test("a resource has a plural, a group and a subresource", () => {
  expect(resourceParts("pods")).toEqual({ resource: "pods", group: "", subresource: "", path: "" });
  expect(resourceParts("deployments.apps/scale")).toEqual({
    resource: "deployments",
    group: "apps",
    subresource: "scale",
    path: "",
  });
  expect(resourceParts("/metrics").path).toBe("/metrics");
});

test("a way begins with the binding of Drover and ends with the rule", () => {
  const way: AccessWay = {
    binding: { kind: "RoleBinding", namespace: "shop", name: "b" },
    subject: { kind: "Group", name: "drover:project:p-1:admin" },
    role: { kind: "ClusterRole", name: "admin" },
    rule: { verbs: ["get"], apiGroups: [""], resources: ["pods"] },
    from: [
      {
        kind: "ProjectRoleTemplateBinding",
        namespace: "p-1",
        name: "x",
        roles: ["project-owner", "admin"],
      },
    ],
  };
  expect(steps(way)).toEqual([
    "ProjectRoleTemplateBinding p-1/x gives the role project-owner (project-owner → admin)",
    "RoleBinding b gives ClusterRole admin to the group drover:project:p-1:admin",
    "its rule allows get on pods",
  ]);
});

test("a rule names its group and objects", () => {
  const rule = { verbs: ["*"], apiGroups: ["apps"], resources: ["deployments"] };
  expect(ruleWords({ ...rule, resourceNames: ["web"] })).toBe("* on deployments of apps named web");
  expect(ruleWords({ verbs: ["get"], nonResourceURLs: ["/metrics"] })).toBe("get on /metrics");
});
