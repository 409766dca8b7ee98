import { beforeEach, expect, test } from "vitest";
import type { Cluster } from "../../api/types.ts";
import {
  addShell,
  closeShell,
  closeShells,
  currentShells,
  hideShells,
  selectShell,
  shellObstacle,
  showShell,
} from "./shells.ts";

const cluster = (id: string, more: object = {}) =>
  ({
    id,
    name: `name of ${id}`,
    state: "active",
    links: { shell: "wss://…" },
    ...more,
  }) as unknown as Cluster;
const now = currentShells;

beforeEach(closeShells);

test("a shell of the cluster is shown again before another one is opened", () => {
  showShell(cluster("c-1"));
  showShell(cluster("c-2"));
  showShell(cluster("c-1"));
  expect(now().all.map(({ clusterId }) => clusterId)).toEqual(["c-1", "c-2"]);
  expect(now().shown).toBe(now().all[0]?.id);
  addShell(cluster("c-1"));
  expect(now().all).toHaveLength(3);
});

test("a hidden drawer keeps its shells, and closes with the last one", () => {
  showShell(cluster("c-1"));
  hideShells();
  expect(now()).toMatchObject({ isOpen: false });
  selectShell(now().all[0]?.id ?? 0);
  expect(now().isOpen).toBe(true);
  closeShell(now().all[0]?.id ?? 0);
  expect(now()).toEqual({ all: [], shown: undefined, isOpen: false });
});

test("the neighbour is shown after a shell was closed", () => {
  for (const id of ["c-1", "c-2", "c-3"]) showShell(cluster(id));
  const [first, second, third] = now().all.map(({ id }) => id);
  selectShell(second ?? 0);
  closeShell(second ?? 0);
  expect(now().shown).toBe(third);
  closeShell(third ?? 0);
  expect(now().shown).toBe(first);
});

test("a cluster without shells says why", () => {
  expect(shellObstacle(cluster("c-1"))).toBeUndefined();
  expect(shellObstacle(cluster("c-1", { links: {} }))).toMatch(/kubectl-shell/);
  expect(shellObstacle(cluster("c-1", { state: "unavailable" }))).toMatch(/active/);
  expect(shellObstacle(cluster("local", { internal: true }))).toMatch(/no pods/);
});
