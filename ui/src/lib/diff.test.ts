import { expect, test } from "vitest";
import { changedLines } from "./diff.ts";

const yaml = (data: string[], version = "1") =>
  ["kind: ConfigMap", "metadata:", `  resourceVersion: "${version}"`, "data:", ...data, ""].join(
    "\n",
  );

test("changed lines are shown with some around them", () => {
  const data = Array.from({ length: 20 }, (_, index) => `  k${index}: v`);
  const after = data.with(10, "  k10: w");
  const lines = changedLines(yaml(data), yaml(after, "2"));
  expect(lines.map(({ change, text }) => `${change} ${text.trim()}`)).toEqual([
    "same k7: v",
    "same k8: v",
    "same k9: v",
    "removed k10: v",
    "added k10: w",
    "same k11: v",
    "same k12: v",
    "same k13: v",
  ]);
  const two = changedLines(yaml(data), yaml(data.with(0, "  x: y").with(19, "  z: y")));
  expect(two.filter(({ change }) => change === "left")).toHaveLength(1);
});

test("a new version alone is no change", () => {
  expect(changedLines(yaml(["  a: b"]), yaml(["  a: b"], "2"))).toEqual([]);
});
