/** Time until a list of 300 clusters shows its first row, in a release build. */

import { appendFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FLEET_TIME_MAX_MS, startFleet, WAITING } from "./fleet.ts";
import { World } from "./world.ts";

/** Each is a browser without a cache. */
const LOADS = 5;
const world = new World(["--clusters", "1", "--nodes", "2"]);

beforeAll(() => startFleet(world), FLEET_TIME_MAX_MS);
afterAll(() => world.end());

declare global {
  interface Window {
    /** Time of the first row, in milliseconds since the start of the load. */
    firstRowAt?: number;
  }
}

/** Runs in the page at each frame, because a request from outside would notice it later. */
function detectFirstRow(): void {
  if (document.querySelector("tr[data-cluster]")) window.firstRowAt = performance.now();
  else requestAnimationFrame(detectFirstRow);
}

test("the first row of 300", async () => {
  const times: number[] = [];
  const elements: number[] = [];
  for (let load = 0; load < LOADS; load += 1) {
    const visitor = await world.visitor();
    const { page } = visitor;
    await visitor.signIn();
    await page.addInitScript(detectFirstRow);
    await page.goto("/clusters?waiting=true", { waitUntil: "commit" });
    await page.waitForFunction(() => window.firstRowAt);
    times.push(await page.evaluate(() => window.firstRowAt ?? Number.NaN));
    await visitor.row("edge-1").waitFor();
    elements.push(await page.evaluate(() => document.querySelectorAll("*").length));
    await visitor.leave();
  }
  times.sort((one, other) => one - other);
  expect(times.length).toBe(LOADS);
  const [fastest, median, slowest] = [0, LOADS >> 1, LOADS - 1].map((at) =>
    Math.round(times[at] ?? 0),
  );
  // `cargo xtask bench` names the history and the run.
  const { DROVER_BENCH_HISTORY: history, DROVER_BENCH_RUN: run } = process.env;
  if (history) {
    const figures = `first-of-${WAITING + 1}-rows=${median}ms elements=${Math.max(...elements)}`;
    appendFileSync(history, `${run}\tinterface\t${figures}\n`);
  }
  console.log(
    `the first of ${WAITING + 1} rows: ${median} ms after the load began (median of ${LOADS}; ${fastest} to ${slowest}), ` +
      `${Math.max(...elements)} elements`,
  );
});
