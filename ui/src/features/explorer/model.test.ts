import { expect, test } from "vitest";
import type { KindObject } from "../../api/kinds.ts";
import { cellText, firstYaml, kindText, objectTone, objectWord, shownColumns } from "./model.ts";

const object = (type: string, state: string, more: Partial<KindObject["metadata"]> = {}) => ({
  id: "web/a",
  type,
  links: {},
  metadata: {
    name: "a",
    uid: "1",
    resourceVersion: "1",
    state: { name: state, error: false, transitioning: false, message: "" },
    ...more,
  },
});

test("a table has the columns that everybody sees, without those of each list", () => {
  const column = (name: string, type = "string", priority = 0) => ({
    name,
    field: "",
    type,
    priority,
  });
  const columns = [
    column("Name"),
    column("Ready"),
    column("Status"),
    column("Restarts", "integer"),
    column("Age"),
    column("IP", "string", 1),
  ];
  expect(shownColumns("pods", columns)).toEqual([
    { name: "Ready", index: 1, isNumber: false },
    { name: "Restarts", index: 3, isNumber: true },
  ]);
  expect(shownColumns("persistentvolumeclaims", columns).map(({ name }) => name)).toContain(
    "Status",
  );
});

test("the state of a pod is the printed one, others are words", () => {
  const fields = ["a", "0/1", "CrashLoopBackOff", 7, "3m"];
  const pod = object("pod", "crashloopbackoff", { fields });
  expect([objectWord(pod), objectTone(pod)]).toEqual(["CrashLoopBackOff", "err"]);
  const deployment = object("apps.deployment", "in-progress");
  expect([objectWord(deployment), objectTone(deployment)]).toEqual(["In progress", "run"]);
  expect(objectTone(object("configmap", "active"))).toBe("ok");
  expect(objectTone(object("pod", "running", { deletionTimestamp: "2026-11-27T10:00:00Z" }))).toBe(
    "rem",
  );
});

test("values of columns are text, whatever a cluster sends", () => {
  const fields = ["a", null, 0, { x: 1 }, "", true];
  const texts = [0, 1, 2, 3, 4, 5, 6].map((index) =>
    cellText(object("pod", "", { fields }), index),
  );
  expect(texts).toEqual(["a", "—", "0", '{"x":1}', "—", "true", "—"]);
});

test("a kind has the words of the sidebar, else its own name", () => {
  expect(kindText("apps.deployment", undefined)).toBe("Deployments");
  const attributes = { group: "example.io", version: "v1", kind: "Widget", namespaced: true };
  const schema = { id: "example.io.widget", pluralName: "example.io.widgets", attributes };
  expect(kindText("example.io.widgets", schema)).toBe("Widget");
});

test("a new object begins with what every object has", () => {
  const attributes = { group: "apps", version: "v1", kind: "Deployment", namespaced: true };
  const schema = { id: "apps.deployment", pluralName: "apps.deployments", attributes };
  expect(firstYaml(schema, "web")).toBe(
    "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: \n  namespace: web\n",
  );
});

test("chosen columns are shown in the order of the cluster, also those that few need", () => {
  const columns = ["Name", "Node", "IP", "Age"].map((name) => ({
    name,
    field: "",
    type: "string",
    priority: name === "IP" ? 1 : 0,
  }));
  const names = (chosen?: string[]) =>
    shownColumns("pods", columns, chosen).map(({ name }) => name);
  expect(names()).toEqual(["Node"]);
  expect(names(["IP", "Node", "gone"])).toEqual(["Node", "IP"]);
  expect(names([])).toEqual([]);
});
