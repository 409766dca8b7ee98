/**
 * A cluster of 2,000 nodes: what is in the document, and what stays reachable by scrolling, keys
 * and menus.
 */

import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "./programs.ts";
import { World } from "./world.ts";

const NODES = 2_000;
/** Most elements of a page, however many nodes there are. */
const ELEMENTS_MAX = 2_000;
/** All nodes are read and written once, in a build without optimizations. */
const IMPORT_TIME_MAX_MS = 300_000;
const world = new World(["--clusters", "1", "--nodes", String(NODES), "--pods", "0"]);

beforeAll(async () => {
  await world.start();
  const visitor = await world.visitor();
  await visitor.signIn();
  await world.run(await visitor.importCommand("many"));
  await eventually(
    "all nodes are known",
    async () => {
      const path = "/v3/clusters?name=many";
      const { data } = await visitor.api<{ data: { id: string }[] }>("GET", path);
      const nodes = `/v3/nodes?limit=1&clusterId=${data[0]?.id}`;
      const { pagination } = await visitor.api<{ pagination: { total: number } }>("GET", nodes);
      expect(pagination.total).toBe(NODES);
    },
    IMPORT_TIME_MAX_MS,
  );
  await world.run("kubectl cordon node-1500");
  await visitor.leave();
}, IMPORT_TIME_MAX_MS);
afterAll(() => world.end());

const elements = (page: Page) => page.evaluate(() => document.querySelectorAll("*").length);
const scrollTo = (page: Page, top: number) =>
  page.evaluate((top) => document.querySelector("main")?.scrollTo({ top }), top);

test("of 2,000 nodes the page draws those in sight, the odd one first, and says how many there are", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await page.goto("/c/many/nodes");
  const list = page.getByRole("table", { name: "Nodes" });
  await list.getByText("Cordoned", { exact: true }).waitFor();
  await list.getByText("Accepts no new pods: it is cordoned.").waitFor();
  expect(await elements(page)).toBeLessThanOrEqual(ELEMENTS_MAX);
  // With the head, and the line that says why one is cordoned.
  expect(Number(await list.getAttribute("aria-rowcount"))).toBe(NODES + 2);
  await visitor.expectAccessible("a table of 2,000 nodes");

  expect(await page.getByRole("cell", { name: "node-2000", exact: true }).count()).toBe(0);
  const last = page.getByRole("cell", { name: "node-2000", exact: true });
  await eventually("the end of the table is in sight", async () => {
    await scrollTo(page, 1e7);
    expect(await last.count()).toBe(1);
  });
  const head = await page.getByRole("columnheader", { name: "State" }).boundingBox();
  const main = await page.getByRole("main").boundingBox();
  expect(Math.abs((head?.y ?? 0) - (main?.y ?? 1e6))).toBeLessThanOrEqual(1);
  expect(await elements(page)).toBeLessThanOrEqual(ELEMENTS_MAX);
  visitor.expectQuiet();
  await visitor.leave();
});

test("a node far down has its menu, which stays while the page scrolls", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await page.goto("/c/many/nodes");
  const button = page.getByRole("button", { name: "More actions for node-1000" });
  await page.getByRole("cell", { name: "node-1", exact: true }).waitFor();
  await eventually("the middle of the table is in sight", async () => {
    await scrollTo(page, 34 * 1000);
    expect(await button.count()).toBe(1);
  });
  await button.click();
  await page.getByRole("menuitem", { name: "Cordon", exact: true }).click();
  // It is now among those that need attention, at the top.
  await scrollTo(page, 0);
  await eventually("both cordoned nodes are at the top", async () => {
    expect(await page.getByText("Cordoned", { exact: true }).count()).toBe(2);
  });
  visitor.expectQuiet();
  await visitor.leave();
});

test("Tab walks from menu to menu beyond what was drawn at first", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await page.goto("/c/many/nodes");
  await page.getByRole("button", { name: "More actions for node-1", exact: true }).focus();
  for (let number = 1; number <= 60; number += 1) {
    const focused = await page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
    expect(focused).toBe(`More actions for node-${number}`);
    // The next row's name, then its menu.
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
  }
  expect(await elements(page)).toBeLessThanOrEqual(ELEMENTS_MAX);
  visitor.expectQuiet();
  await visitor.leave();
});
