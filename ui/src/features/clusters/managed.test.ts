import { expect, test } from "vitest";
import type { ImportCheck } from "../../api/types.ts";
import { but, cluster, condition, waiting } from "./examples.ts";
import { adoptCommand, asNewCommand, isAlreadyManaged, managerOf } from "./managed.ts";

const check = (change: Partial<ImportCheck>): ImportCheck => ({
  type: "importCheck",
  clusters: [],
  hiddenClusters: 0,
  ...change,
});

test("an entry is refused as long as a condition says so and it is not being removed", () => {
  const refused = but(waiting(), condition("Connected", "Unknown", "AlreadyManaged"));
  expect(isAlreadyManaged(refused)).toBe(true);
  expect(isAlreadyManaged({ ...refused, state: "removing" })).toBe(false);
  expect(isAlreadyManaged(but(cluster(), condition("Ready", "False", "AlreadyManaged")))).toBe(
    true,
  );
  expect(isAlreadyManaged(waiting())).toBe(false);
  expect(isAlreadyManaged(cluster())).toBe(false);
});

test("the other entry is named to those who may see it, and to nobody else", () => {
  const named = managerOf(check({ clusters: [{ id: "c-1", name: "edge" }] }));
  expect(named).toEqual({ words: "as edge", name: "edge" });
  const hidden = managerOf(check({ hiddenClusters: 1 }));
  expect(hidden).toEqual({ words: "by an entry that you may not see", name: undefined });
  // The server was restarted, and the agent has not connected since.
  expect(managerOf(check({}))).toEqual({ words: "by another entry", name: undefined });
});

test("the commands are those of the command line", () => {
  expect(adoptCommand("edge")).toBe("drover cluster import edge --kubeconfig FILE --adopt");
  expect(asNewCommand("other")).toBe(
    "drover cluster import other --kubeconfig FILE --resume --as-new",
  );
});
