import { expect, test } from "vitest";
import { belongings, PODS_SHOWN, type Surroundings, selects } from "./model.ts";

const object = (name: string, more: object = {}, labels: Record<string, string> = {}) =>
  ({
    id: `a/${name}`,
    type: "x",
    links: {},
    metadata: { name, uid: name, labels },
    ...more,
  }) as never;
const web = { app: "web" };
const namespace: Surroundings = {
  ingresses: [
    object("front", {
      spec: { rules: [{ http: { paths: [{ backend: { service: { name: "web" } } }] } }] },
    }),
    object("other", { spec: { defaultBackend: { service: { name: "else" } } } }),
  ],
  services: [object("web", { spec: { selector: web } }), object("else", { spec: {} })],
  workloads: [
    object("deployment", {
      spec: { selector: { matchLabels: web }, template: { metadata: { labels: web } } },
    }),
    object("unrelated", { spec: { selector: { matchLabels: { app: "x" } } } }),
  ],
  pods: [object("pod-1", {}, web), object("pod-2", {}, web), object("stray", {}, { app: "x" })],
};
const names = (nodes: { key: string }[]) => nodes.map(({ key }) => key);

test.each(["front", "web", "deployment", "pod-1"])("%s shows the whole way", (start) => {
  const { columns, edges } = belongings(namespace, start);
  expect(names(columns.ingresses)).toEqual(["front"]);
  expect(names(columns.services)).toEqual(["web"]);
  expect(names(columns.workloads)).toEqual(["deployment"]);
  expect(names(columns.pods)).toEqual(start === "pod-1" ? ["pod-1"] : ["pod-1", "pod-2"]);
  expect(edges).toContainEqual(["front", "web"]);
  expect(edges).toContainEqual(["web", "deployment"]);
  expect(edges).toContainEqual(["deployment", "pod-1"]);
});

test("a service without workload leads to its pods, and one without selector to nothing", () => {
  const { edges } = belongings({ ...namespace, workloads: [] }, "web");
  expect(edges).toContainEqual(["web", "pod-1"]);
  expect(belongings(namespace, "else").columns.pods).toEqual([]);
});

test("many pods are counted", () => {
  const pods = Array.from({ length: PODS_SHOWN + 30 }, (_, at) => object(`p-${at}`, {}, web));
  const map = belongings({ ...namespace, pods }, "web");
  expect(map.columns.pods).toHaveLength(PODS_SHOWN);
  expect(map.morePods).toBe(30);
});

test("a selector is read as Kubernetes reads it", () => {
  const by = (operator: string, values?: string[]) => ({
    matchExpressions: [{ key: "app", operator, ...(values && { values }) }],
  });
  expect(selects({}, web)).toBe(false);
  expect(selects(by("In", ["web", "api"]), web)).toBe(true);
  expect(selects(by("NotIn", ["web"]), web)).toBe(false);
  expect(selects(by("NotIn", ["web"]), {})).toBe(true);
  expect(selects(by("Exists"), web)).toBe(true);
  expect(selects(by("DoesNotExist"), web)).toBe(false);
  expect(selects(by("Near"), web)).toBe(false);
});
