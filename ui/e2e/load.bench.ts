/** The first visit of a browser that has nothing stored: how much it reads, and how soon it paints. */

import { appendFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { World } from "./world.ts";

/** Of the first paint with content, over all visits: the median. */
const PAINT_MAX_MS = 1000;
/** Compressed, until the list of clusters shows. */
const FIRST_LOAD_MAX_BYTES = 300 * 1024;
const VISITS = 10;
const world = new World(["--clusters", "1", "--nodes", "1"]);

beforeAll(() => world.start());
afterAll(() => world.end());

test("a first visit is small, and paints soon", async () => {
  const paints: number[] = [];
  let most = 0;
  for (let visit = 0; visit < VISITS; visit += 1) {
    // A context has a cache of its own.
    const visitor = await world.visitor();
    const devtools = await visitor.context.newCDPSession(visitor.page);
    await devtools.send("Network.enable");
    let bytes = 0;
    devtools.on("Network.loadingFinished", ({ encodedDataLength }) => {
      bytes += encodedDataLength;
    });
    await visitor.page.goto("/");
    await visitor.page.getByLabel("User name").waitFor();
    const paint = await visitor.page.evaluate(
      () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN,
    );
    paints.push(paint);
    await visitor.signIn();
    most = Math.max(most, bytes);
    await visitor.leave();
  }
  paints.sort((one, other) => one - other);
  const median = paints[Math.floor(VISITS / 2)] ?? Number.NaN;
  const figures = [
    `first-paint=${Math.round(median)}ms`,
    `first-paint-max=${Math.round(paints.at(-1) ?? 0)}ms`,
    `first-load=${(most / 1024).toFixed(0)}KiB`,
  ].join(" ");
  const { DROVER_BENCH_HISTORY: history, DROVER_BENCH_RUN: run } = process.env;
  if (history) appendFileSync(history, `${run}\tfirst-visit\t${figures}\n`);
  console.log(`${VISITS} first visits: ${figures}`);
  expect(most).toBeLessThanOrEqual(FIRST_LOAD_MAX_BYTES);
  expect(median).toBeLessThan(PAINT_MAX_MS);
}, 180_000);
