import { expect, test } from "vitest";
import {
  controllerRevisions,
  deploymentRevisions,
  rolledBack,
  selectorText,
  withImages,
  workloadKind,
} from "./model.ts";

const UID = "1";
const owner = [{ uid: UID, controller: true }];
const template = (image: string, labels: Record<string, string> = {}) => ({
  metadata: { labels },
  spec: { containers: [{ name: "web", image }] },
});

test("the revisions of a deployment are its own replica sets, the newest first", () => {
  const set = (revision: string, image: string, ownerReferences = owner) => ({
    metadata: {
      name: `web-${revision}`,
      annotations: { "deployment.kubernetes.io/revision": revision },
      ownerReferences,
    },
    spec: { template: template(image, { app: "web", "pod-template-hash": "abc" }) },
  });
  const foreign = [{ uid: "2", controller: true }];
  const sets = [set("9", "web:1"), set("10", "web:2"), set("11", "web:3", foreign)];
  const revisions = deploymentRevisions(UID, sets);
  expect(revisions.map(({ number, isCurrent, images }) => [number, isCurrent, images])).toEqual([
    [10, true, ["web:2"]],
    [9, false, ["web:1"]],
  ]);
  const [, old] = revisions;
  if (!old) throw new Error("there are two");
  // The label of the old replica set would make its pods those of that one.
  expect(JSON.parse(rolledBack(old).body)).toEqual([
    { op: "replace", path: "/spec/template", value: template("web:1", { app: "web" }) },
  ]);
});

test("a revision of a stateful set replaces the template without the word for the patch", () => {
  const data = { spec: { template: { $patch: "replace", ...template("db:1") } } };
  const [revision] = controllerRevisions(UID, [
    { metadata: { name: "db-1", ownerReferences: owner }, revision: 1, data },
  ]);
  if (!revision) throw new Error("there is one");
  expect(JSON.parse(rolledBack(revision).body)[0].value).toEqual(template("db:1"));
});

test("a change of images names each container, so that another one is not changed", () => {
  const { body } = withImages(template("web:1"), new Map([["web", "web:2"]]));
  expect(JSON.parse(body)).toEqual([
    { op: "test", path: "/spec/template/spec/containers/0/name", value: "web" },
    { op: "replace", path: "/spec/template/spec/containers/0/image", value: "web:2" },
  ]);
  expect(withImages(template("web:1"), new Map()).body).toBe("[]");
});

test("a selector is written as requests have it", () => {
  const matchExpressions = [
    { key: "tier", operator: "In", values: ["a", "b"] },
    { key: "old", operator: "DoesNotExist" },
  ];
  expect(selectorText({ matchLabels: { app: "web" }, matchExpressions })).toBe(
    "app=web,tier in (a,b),!old",
  );
});

test("a workload is known by its plural and its id", () => {
  expect(workloadKind("apps.deployment")).toBe(workloadKind("apps.deployments"));
  expect(workloadKind("configmaps")).toBeUndefined();
});
