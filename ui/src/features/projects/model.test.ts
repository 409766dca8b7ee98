import { expect, test } from "vitest";
import type { Project } from "../../api/projects.ts";
import { namespacesOf, quotaOf, quotaUses, shortId } from "./model.ts";

const project: Project = {
  id: "c-1:p-1",
  type: "project",
  name: "shop",
  clusterId: "c-1",
  resourceQuota: {
    limit: { limitsCpu: "4000m", pods: "10", requestsMemory: "what" },
    usedLimit: { limitsCpu: "1", pods: "12" },
  },
};

test("a quota shows what is used of each limit that is set", () => {
  expect(quotaUses(project).map(({ text, percent }) => [text, percent])).toEqual([
    ["1 core of 4 cores", 25],
    ["0 B of what", undefined],
    ["12 of 10", 120],
  ]);
  expect(quotaUses({ ...project, resourceQuota: null })).toEqual([]);
});

test("empty fields of a form are no limits", () => {
  const data = new FormData();
  data.set("limit.pods", " 5 ");
  data.set("limit.secrets", "");
  expect(quotaOf(data, "limit.")).toEqual({ pods: "5" });
});

test("namespaces are those of a project, or those of none", () => {
  const namespace = (name: string, projectId?: string | null) => ({
    id: name,
    type: "namespace",
    name,
    ...(projectId !== undefined && { projectId }),
  });
  const all = [
    namespace("b", "c-1:p-1"),
    namespace("a", "c-1:p-1"),
    namespace("c", ""),
    namespace("d"),
  ];
  expect(namespacesOf(all, "c-1:p-1").map(({ name }) => name)).toEqual(["a", "b"]);
  expect(namespacesOf(all, undefined).map(({ name }) => name)).toEqual(["c", "d"]);
});

test("addresses have the part of the id after the cluster's", () => {
  expect(shortId(project)).toBe("p-1");
});
