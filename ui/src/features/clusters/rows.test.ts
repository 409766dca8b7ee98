import { expect, test } from "vitest";
import { cluster, lost, NOW, waiting } from "./examples.ts";
import { groupLabels, tableRows, WAITING_SHOWN_MAX } from "./rows.ts";

const OPTIONS = { grouped: true, pins: [], waitingShown: false, now: NOW };
const manyWaiting = (number: number) =>
  Array.from({ length: number }, (_, index) => waiting({ id: `w-${index}`, name: `w-${index}` }));
const active = cluster({ id: "a", name: "a" });
const keys = (...of: Parameters<typeof tableRows>) => tableRows(...of).map(({ key }) => key);

test("many clusters that wait are one line, so that active ones are seen", () => {
  const fleet = [lost({ id: "l" }), ...manyWaiting(300), active];
  expect(keys(fleet, OPTIONS)).toEqual([
    "group Needs attention",
    "l",
    "l reason",
    "group Waiting",
    "group All others",
    "a",
  ]);
  const head = tableRows(fleet, OPTIONS).find(({ key }) => key === "group Waiting");
  expect(head).toMatchObject({ size: 300, fold: "closed" });
  const all = tableRows(fleet, { ...OPTIONS, waitingShown: true });
  expect(all.filter(({ kind }) => kind === "cluster")).toHaveLength(302);
  expect(all.find(({ key }) => key === "group Waiting")).toMatchObject({ fold: "open" });
});

test("a few clusters that wait are shown with their next step, without a fold", () => {
  const rows = tableRows([...manyWaiting(WAITING_SHOWN_MAX), active], OPTIONS);
  expect(rows.filter(({ kind }) => kind === "reason")).toHaveLength(WAITING_SHOWN_MAX);
  expect(rows[0]).not.toHaveProperty("fold");
});

test("a filtered or sorted list is neither grouped nor folded", () => {
  const rows = keys([...manyWaiting(5), active], { ...OPTIONS, grouped: false });
  expect(rows).toHaveLength(11);
  expect(rows.at(-1)).toBe("a");
});

test("pinned clusters come before all others, and a fleet without any is All", () => {
  const fleet = [active, cluster({ id: "b", name: "b" })];
  expect(keys(fleet, { ...OPTIONS, pins: ["b"] })).toEqual([
    "group Pinned",
    "b",
    "group All others",
    "a",
  ]);
  expect(keys(fleet, OPTIONS)[0]).toBe("group All");
});

test("clusters are grouped by a label, and those without it come last", () => {
  const fleet = [
    cluster({ id: "a", name: "a", labels: { env: "test", "x.cattle.io/y": "z" } }),
    cluster({ id: "b", name: "b" }),
    cluster({ id: "c", name: "c", labels: { env: "prod", team: "web" } }),
    cluster({ id: "d", name: "d", labels: { env: "test" } }),
  ];
  expect(keys(fleet, { ...OPTIONS, label: "env" })).toEqual([
    "group env: prod",
    "c",
    "group env: test",
    "a",
    "d",
    "group Without env",
    "b",
  ]);
  expect(groupLabels(fleet)).toEqual(["env", "team"]);
});
