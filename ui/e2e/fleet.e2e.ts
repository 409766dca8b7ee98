/**
 * A list of 300 clusters: what is in the document, what stays in sight, and what keys and screen
 * readers find.
 */

import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FLEET_TIME_MAX_MS, startFleet, WAITING } from "./fleet.ts";
import { eventually } from "./programs.ts";
import { World } from "./world.ts";

/** Most elements of a page, however many clusters there are. */
const ELEMENTS_MAX = 2_000;
const world = new World(["--clusters", "1", "--nodes", "2"]);

beforeAll(() => startFleet(world), FLEET_TIME_MAX_MS);
afterAll(() => world.end());

const elements = (page: Page) => page.evaluate(() => document.querySelectorAll("*").length);

/** Whether an element of the list is in the window of the page, below the head of the table. */
function isInSight(page: Page, selector: string): Promise<boolean> {
  return page.evaluate((selector) => {
    const [element, main] = [selector, "main"].map((one) => document.querySelector(one));
    if (!element || !main) return false;
    const [inner, outer] = [element.getBoundingClientRect(), main.getBoundingClientRect()];
    return inner.top >= outer.top + 32 && inner.bottom <= outer.bottom;
  }, selector);
}

test("300 clusters that wait are one line, so that the active one is in sight, and few are elements", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  const list = page.getByRole("table", { name: "Clusters" });
  const fold = list.getByRole("button", { name: `Waiting ${WAITING}` });
  await fold.waitFor();
  expect(await fold.getAttribute("aria-expanded")).toBe("false");
  await visitor.row("zulu").getByText("Active").waitFor();
  expect(await isInSight(page, "tr[data-cluster=zulu]")).toBe(true);
  expect(await elements(page)).toBeLessThanOrEqual(ELEMENTS_MAX);
  await visitor.expectAccessible("a folded fleet");

  await fold.click();
  await visitor.row("edge-1").waitFor();
  expect(new URL(page.url()).search).toBe("?waiting=true");
  expect(await elements(page)).toBeLessThanOrEqual(ELEMENTS_MAX);
  // Two rows each; heads of columns and of two groups; two active ones.
  const rows = await list.getAttribute("aria-rowcount");
  expect(Number(rows)).toBe(2 * WAITING + 1 + 2 + 2);
  await visitor.expectAccessible("an unfolded fleet");

  // The first row after a load, in a new document.
  await page.reload();
  await visitor.row("edge-1").waitFor();
  const first = await page.evaluate(() => Math.round(performance.now()));
  console.log(`the first of ${WAITING} rows was there within ${first} ms of the load`);
  visitor.expectQuiet();
  await visitor.leave();
});

test("while a long list scrolls its head stays, its end is reached, and a filter finds what is far away", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await page.goto("/clusters?waiting=true");
  await visitor.row("edge-1").waitFor();
  expect(await visitor.row("edge-290").count()).toBe(0);
  const link = page.getByRole("link", { name: "edge-2", exact: true });
  await link.focus();
  await eventually("the end of the list is in sight", async () => {
    await page.evaluate(() => document.querySelector("main")?.scrollTo({ top: 1e6 }));
    expect(await isInSight(page, "tr[data-cluster=zulu]")).toBe(true);
  });
  const head = await page.getByRole("columnheader", { name: "State" }).boundingBox();
  const main = await page.getByRole("main").boundingBox();
  expect(Math.abs((head?.y ?? 0) - (main?.y ?? 1e6))).toBeLessThanOrEqual(1);
  expect(await elements(page)).toBeLessThanOrEqual(ELEMENTS_MAX);
  expect(await visitor.row("edge-150").count()).toBe(0);
  // The focus stays where it was, though that is far out of sight.
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("edge-2");
  expect(await isInSight(page, "tr[data-cluster=edge-2]")).toBe(false);

  await page.keyboard.press("/");
  await page.keyboard.type("edge-150");
  await visitor.row("edge-150").waitFor();
  expect(await isInSight(page, "tr[data-cluster=edge-150]")).toBe(true);
  expect(await page.locator("tr[data-cluster]").count()).toBe(1);
  visitor.expectQuiet();
  await visitor.leave();
});

test("Tab walks through the whole list, row by row", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await page.goto("/clusters?waiting=true");
  await page.getByRole("link", { name: "edge-1", exact: true }).focus();
  for (let number = 1; number <= 60; number += 1) {
    const link = `tr[data-cluster=edge-${number}] a`;
    const focused = await page.evaluate(() => document.activeElement?.textContent);
    expect(focused).toBe(`edge-${number}`);
    expect(await isInSight(page, link), link).toBe(true);
    // The next step of this one, then the next name.
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
  }
  visitor.expectQuiet();
  await visitor.leave();
});
