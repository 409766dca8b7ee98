/** The frame around the pages: addresses without a page, headings, and a long name on a phone. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "1"]);
const LONG = "a-cluster-with-a-name-of-63-characters-as-long-as-it-may-be-eu1";

beforeAll(() => world.start());
afterAll(() => world.end());

test("a mistyped address shows the page for it inside the frame, and clients of the APIs keep their errors", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  for (const path of ["/nosuch", "/clusters/north", "/c/north/nosuch"]) {
    await page.goto(path);
    await page.getByRole("heading", { name: "No such page", level: 1 }).waitFor();
    await page
      .getByRole("navigation")
      .getByRole("link", { name: /^Clusters/ })
      .waitFor();
    expect(await page.title()).toBe("No such page · Drover");
  }
  await visitor.expectAccessible("no such page");
  const asBrowser = { headers: { accept: "text/html,*/*;q=0.8" } };
  const asProgram = { headers: { accept: "application/json" } };
  const { paths } = await (await visitor.context.request.get("/", asProgram)).json();
  expect(paths.length).toBeGreaterThan(10);
  for (const path of [...paths, "/ping", "/metrics", "/k8s/nosuch"]) {
    const response = await visitor.context.request.get(path, asBrowser);
    expect(await response.text(), path).not.toContain('<div id="root">');
  }
  const program = await visitor.context.request.get("/nosuch", { headers: { accept: "*/*" } });
  expect([program.status(), await program.text()]).toEqual([404, "404 page not found\n"]);
  await visitor.leave();
});

test("the heading of each page of a cluster names the page", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  for (const [path, heading] of [
    ["/c/local", "local"],
    ["/c/local/nodes", "Nodes of local"],
    ["/c/local/conditions", "Conditions of local"],
    ["/c/local/audit", "Audit log of local"],
    ["/audit", "Audit log"],
    ["/password", "Your password"],
  ] as const) {
    await page.goto(path);
    await page.getByRole("heading", { name: heading, exact: true, level: 1 }).waitFor();
    expect(await page.title()).toBe(`${heading} · Drover`);
  }
  visitor.expectQuiet();
  await visitor.leave();
});

test("on a phone the longest name covers neither the search nor the menu", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await visitor.importCommand(LONG, { environment: "production" });
  for (const width of [390, 320]) {
    await page.setViewportSize({ width, height: 844 });
    await page.goto(`/c/${LONG}`);
    await page.getByRole("heading", { name: LONG, level: 1 }).waitFor();
    const switcher = await page.getByRole("button", { name: /switch cluster$/ }).boundingBox();
    const search = await page.getByRole("button", { name: /Search or jump to/ }).boundingBox();
    const person = await page.getByRole("button", { name: /^You: / }).boundingBox();
    if (!switcher || !search || !person) throw new Error("the top bar lacks a part");
    expect(switcher.x + switcher.width).toBeLessThanOrEqual(search.x);
    expect(person.x + person.width).toBeLessThanOrEqual(width);
    await page.getByRole("button", { name: /Search or jump to/ }).click({ trial: true });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    await visitor.expectAccessible(`a long name at ${width}`);
  }
  visitor.expectQuiet();
  await visitor.leave();
});
