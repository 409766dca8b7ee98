/**
 * Outdated data is marked on every page: of a cluster without its agent, and of an unavailable
 * server.
 */

import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "3", "--pods", "12"]);

/** How long the server hangs. */
const HANG_MS = 60_000;

beforeAll(async () => {
  await world.start();
  const visitor = await world.visitor();
  await visitor.signIn();
  await world.run(await visitor.importCommand("north"));
  await visitor.row("north").getByText("Active").waitFor();
  await visitor.leave();
});
afterAll(() => world.end());

/** Number of marks on the page with the colour of healthy. */
function greenMarks(page: Page, within = "main, nav"): Promise<number> {
  return page.evaluate((within) => {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = "var(--ok)";
    const green = getComputedStyle(probe).color;
    probe.remove();
    const parts = [...document.querySelectorAll(within)].flatMap((part) => [
      ...part.querySelectorAll("*"),
    ]);
    return parts.filter((part) => {
      const { color, fill, backgroundColor } = getComputedStyle(part);
      return color === green || fill === green || backgroundColor === green;
    }).length;
  }, within);
}

test("a cluster whose agent is silent is past on each of its pages, and the notice names what fails", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await page.goto("/c/north");
  await page.getByText("Agent connected for").waitFor();
  await page.getByText("node-1", { exact: true }).waitFor();
  expect(await greenMarks(page)).toBeGreaterThan(3);
  // A request that is under way would fail, and the browser would report that.
  await page.waitForLoadState("networkidle");
  await world.sim.kill();

  await page.getByText(/^Agent silent for \d+ s$/).waitFor();
  // The page does not show the title of a true condition.
  expect(await page.getByText("Tunnel open").count()).toBe(0);
  await page.getByText("Was ready").first().waitFor();
  await page.getByText("As last known", { exact: true }).first().waitFor();
  expect(await greenMarks(page)).toBe(0);

  await page
    .getByRole("navigation")
    .getByRole("link", { name: /^Nodes/ })
    .click();
  await page.getByRole("heading", { name: "Nodes of north", level: 1 }).waitFor();
  await page.getByText(/^Agent silent for \d+ s$/).waitFor();
  await page.getByRole("cell", { name: "Was ready" }).first().waitFor();
  expect(await page.getByRole("cell", { name: "Ready", exact: true }).count()).toBe(0);
  expect(await greenMarks(page)).toBe(0);

  await page.getByRole("link", { name: "What to check" }).click();
  await page.getByRole("heading", { name: "Conditions of north", level: 1 }).waitFor();
  const observed = page.getByRole("listitem").filter({ hasText: "Up to date" });
  await observed.getByText("As last known: ").waitFor();
  expect(await greenMarks(page, "[data-past]")).toBe(0);
  // Conditions that Drover knows by itself stay valid.
  expect(await greenMarks(page)).toBeGreaterThan(0);

  await world.sim.start();
  await page.getByText("The agent's tunnel to this server is open.").waitFor();
  await page.getByText(/^Agent silent for/).waitFor({ state: "detached" });
  expect(await page.getByText("As last known").count()).toBe(0);
  visitor.expectQuiet();
  await visitor.leave();
});

test("while the server does not respond every page shows it, and nothing on it looks healthy", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await visitor.row("north").getByText("Active").waitFor();
  expect(await greenMarks(page)).toBeGreaterThan(0);
  await world.server.kill();

  const connection = page.getByRole("status", { name: "Connection" });
  await connection.getByText(/The server does not respond\. What you see is as of \d/).waitFor();
  await visitor.row("north").getByText("Was active").waitFor();
  expect(await visitor.row("north").getByText("live").count()).toBe(0);
  expect(await greenMarks(page)).toBe(0);
  expect(await page.getByText(/agents? connected/).count()).toBe(0);

  await page.getByRole("link", { name: "north" }).click();
  await page.getByRole("heading", { name: "north", level: 1 }).waitFor();
  await connection.getByText("The server does not respond.").waitFor();
  await page.getByText("Was active").waitFor();
  expect(await greenMarks(page)).toBe(0);
  expect(await page.getByText("Agent connected for").count()).toBe(0);

  await world.startServer();
  await connection.getByText("The server does not respond.").waitFor({ state: "detached" });
  await page.getByText("Agent connected for").waitFor();
  await page.getByText("Active", { exact: true }).waitFor();
  expect(await greenMarks(page)).toBeGreaterThan(0);
  await visitor.leave();
});

test("a server that hangs for a minute is reported, and nothing that was typed is lost", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await page.goto("/c/north/kinds/configmaps");
  await visitor.freshness("Live");
  await page.getByRole("button", { name: "Create" }).click();
  const editor = page.getByRole("textbox", { name: /^YAML/ });
  const typed = `${(await editor.inputValue()).replace("name: ", "name: typed")}data: {a: b}\n`;
  await editor.fill(typed);
  await page.waitForLoadState("networkidle");
  world.server.pause();
  const paused = performance.now();
  await visitor.freshness(/^Offline/);
  await page.getByText("The server does not respond.").waitFor();
  // What others do meanwhile.
  await world.run("kubectl create configmap made-meanwhile");
  // All the time until the minute is over.
  const isOver = async () => {
    expect(await editor.inputValue()).toBe(typed);
    return performance.now() - paused >= HANG_MS;
  };
  await expect.poll(isOver, { timeout: HANG_MS + 5_000, interval: 1_000 }).toBe(true);
  world.server.resume();
  await visitor.freshness("Live");
  await page.getByText("The server does not respond.").waitFor({ state: "detached" });
  expect(await editor.inputValue()).toBe(typed);
  await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "typed", level: 1 }).waitFor();
  await page.goBack();
  await page.getByRole("link", { name: "made-meanwhile" }).waitFor();
  await visitor.leave();
}, 150_000);
