import { expect, test } from "vitest";
import type { Condition, Node } from "../../api/types.ts";
import { inOrder, isDraining, nodeProblems, nodeReason, nodeTone, nodeWord } from "./nodes.ts";

function node(name: string, conditions: Condition[], change: Partial<Node> = {}): Node {
  return { id: `c-1:${name}`, type: "node", name, conditions, ...change };
}
const ready: Condition = { type: "Ready", status: "True" };
const healthy = node("a", [ready]);
const pressed = node("b", [ready, { type: "MemoryPressure", status: "True" }]);
const broken = node("c", [
  { type: "Ready", status: "False", message: "container runtime is down" },
]);
const silent = node("d", [{ type: "Ready", status: "Unknown" }]);
const cordoned = node("e", [ready], { unschedulable: true });

test("a node has a state, and a reason unless it is simply ready", () => {
  expect([healthy, pressed, broken, silent, cordoned].map(nodeWord)).toEqual([
    "Ready",
    "Ready, memory pressure",
    "Not ready",
    "Unknown",
    "Cordoned",
  ]);
  expect([healthy, pressed, broken, silent, cordoned].map(nodeTone)).toEqual([
    "ok",
    "warn",
    "err",
    "off",
    "done",
  ]);
  expect(nodeReason(healthy)).toBeUndefined();
  expect(nodeReason(broken)).toBe("container runtime is down");
  for (const one of [pressed, silent, cordoned, node("f", [])])
    expect(nodeReason(one)).toBeTruthy();
});

test("a drain is reported while it is in progress and if it failed, only of a cordoned node", () => {
  const drained = (status: string, reason: string, unschedulable = true) =>
    node("n", [ready, { type: "Drained", status, reason, message: "1 of 2" }], { unschedulable });
  const states = [
    drained("Unknown", "Draining"),
    drained("True", "Drained"),
    drained("False", "TimedOut"),
    drained("False", "Stopped"),
    drained("True", "Drained", false),
  ];
  expect(states.map(nodeWord)).toEqual([
    "Draining",
    "Drained",
    "Drain failed",
    "Cordoned",
    "Ready",
  ]);
  expect(states.map(nodeTone)).toEqual(["run", "done", "warn", "done", "ok"]);
  expect(states.map(isDraining)).toEqual([true, false, false, false, false]);
  expect(states.map(nodeReason).slice(0, 3)).toEqual([
    "1 of 2",
    "Takes no new pods: it was drained.",
    "1 of 2",
  ]);
  expect(nodeProblems(states).map(({ text }) => text)).toEqual(["1 of 2"]);
});

test("only nodes with problems need attention, worst first", () => {
  const all = [healthy, pressed, broken, silent, cordoned];
  expect(nodeProblems(all).map(({ node: { name } }) => name)).toEqual(["d", "c", "b"]);
  expect(inOrder(all).map(({ name }) => name)).toEqual(["d", "c", "b", "e", "a"]);
});
