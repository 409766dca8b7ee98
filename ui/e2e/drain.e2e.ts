/**
 * A node is drained from its menu: held by a disruption budget, stopped, and drained to the end.
 */

import { afterAll, beforeAll, test } from "vitest";
import { type Visitor, World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "2"]);

beforeAll(async () => {
  await world.start();
  const visitor = await world.visitor();
  await visitor.signIn();
  await world.run(await visitor.importCommand("orchard"));
  await visitor.row("orchard").getByText("Active").waitFor();
  await world.run("kubectl create deployment web --image=web --replicas=6");
  await world.run("kubectl rollout status deployment web --timeout=60s");
  // A simulation runs no disruption controller, so this budget allows no eviction as long as it
  // exists.
  await world.run("kubectl create poddisruptionbudget web --selector=app=web --min-available=1");
  await visitor.leave();
});
afterAll(() => world.end());

async function choose({ page }: Visitor, item: string): Promise<void> {
  await page.getByRole("button", { name: "More actions for node-1" }).click();
  await page.getByRole("menuitem", { name: item, exact: true }).click();
}

async function drain(visitor: Visitor): Promise<void> {
  await choose(visitor, "Drain…");
  const dialog = visitor.page.getByRole("dialog", { name: "Drain node-1?" });
  await dialog.getByLabel("Give up after, in minutes").fill("5");
  await visitor.expectAccessible("the dialog that drains a node");
  await dialog.getByRole("button", { name: "Drain", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
}

test("a drain shows what holds it, is stopped, and comes to its end", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await page.goto("/c/orchard/nodes");
  await drain(visitor);
  await page.getByText("Draining", { exact: true }).waitFor();
  await page.getByText(/pods have ended; left: default\/web-.*disruption budget web/).waitFor();
  await visitor.expectAccessible("a node that is being drained");
  await choose(visitor, "Stop draining");
  await page.getByText("Cordoned", { exact: true }).waitFor();

  await world.run("kubectl delete poddisruptionbudget web");
  await drain(visitor);
  await page.getByText("Drained", { exact: true }).waitFor();
  await page.getByText("Takes no new pods: it was drained.").waitFor();
  await choose(visitor, "Uncordon");
  await page.getByText("Drained", { exact: true }).waitFor({ state: "detached" });
  visitor.expectQuiet();
  await visitor.leave();
});

test("the dialog shows what blocks a drain, and offers to continue", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  const alone = { spec: { nodeName: "node-1" } };
  await world.run(`kubectl run alone --image=alone --overrides='${JSON.stringify(alone)}'`);
  await page.goto("/c/orchard/nodes");
  await choose(visitor, "Drain…");
  const dialog = page.getByRole("dialog", { name: "Drain node-1?" });
  await dialog.getByRole("button", { name: "Drain", exact: true }).click();
  await dialog.getByText(/default\/alone/).waitFor();
  await visitor.expectAccessible("a drain that was refused");
  await dialog.getByLabel("Also pods that nothing starts again").check();
  await dialog.getByRole("button", { name: "Drain", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByText("Drained", { exact: true }).waitFor();
  await visitor.leave();
});
