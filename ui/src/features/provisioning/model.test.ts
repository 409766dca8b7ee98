import { expect, test } from "vitest";
import type { ClusterDriver } from "../../api/drivers.ts";
import type { Cluster } from "../../api/types.ts";
import { firstOptions, isAtWork, usableDrivers } from "./model.ts";

function driver(fields: Partial<ClusterDriver>): ClusterDriver {
  return { id: "kd-1", type: "kontainerDriver", state: "active", name: "example", ...fields };
}

test("only active drivers make clusters", () => {
  const drivers = [
    driver({ name: "oke" }),
    driver({ state: "inactive" }),
    driver({ state: "downloading", name: null }),
    driver({ name: "example" }),
  ];
  expect(usableDrivers(drivers).map(({ name }) => name)).toEqual(["example", "oke"]);
});

test("the options of clouds that most people set come first", () => {
  const gke = driver({ name: "googleKubernetesEngine", builtIn: true });
  expect(firstOptions(gke, ["a"])[0]).toBe("projectId");
  expect(firstOptions(driver({}), ["a", "b"])).toEqual(["a", "b"]);
});

test("a driver is at work until the cluster is used, and while it changes it", () => {
  const cluster = (state: string, transitioning: string): Cluster => ({
    id: "c-1",
    type: "cluster",
    name: "one",
    state,
    transitioning,
  });
  expect(isAtWork(cluster("provisioning", "yes"))).toBe(true);
  expect(isAtWork(cluster("updating", "error"))).toBe(true);
  expect(isAtWork(cluster("active", "no"))).toBe(false);
  expect(isAtWork(cluster("unavailable", "error"))).toBe(false);
});
