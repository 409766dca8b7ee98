/**
 * A cluster that an entry manages, imported a second time: the page names the first entry and shows
 * the solutions.
 */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { drover, SCREENS } from "./programs.ts";
import { PASSWORD, type Visitor, World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "2"]);
const OWNERS_PASSWORD = "password-of-an-owner";
const NAMED = "This cluster is managed already, as edge.";

beforeAll(async () => {
  await world.start();
  const visitor = await world.visitor();
  await visitor.signIn();
  await world.run(await visitor.importCommand("edge"));
  await visitor.row("edge").getByText("Active").waitFor();
  await world.run(await visitor.importCommand("again"));
  const olive = { username: "olive", name: "Olive", password: OWNERS_PASSWORD };
  await visitor.makeUser(olive, { cluster: "again", role: "cluster-owner" });
  await visitor.leave();
});
afterAll(() => world.end());

/** Runs a command of the page like its user: logged in, with a kubeconfig of the cluster. */
async function follow(command: string): Promise<void> {
  const kubeconfig = join(world.sim.data, "admin.kubeconfig");
  const line = command.replace("FILE", kubeconfig).replace(/^drover/, drover());
  const login = `${drover()} login ${world.server.url()} --username admin --password ${PASSWORD} --yes`;
  await world.run(`${login} && ${line}`);
}

/** The text that a button of the page copies. */
async function copied({ page }: Visitor, button: string): Promise<string> {
  await page.getByRole("button", { name: button }).click();
  return page.evaluate(() => navigator.clipboard.readText());
}

test("the page that waits for the agent says that it was refused, by the name of the other entry", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  const { data } = await visitor.api<{ data: { id: string }[] }>("GET", "/v3/clusters?name=again");
  await page.goto(`/clusters?import=${data[0]?.id}`);
  const dialog = page.getByRole("dialog", { name: "Import again" });
  await dialog.getByText(NAMED).waitFor();
  await dialog.getByText("1 of 6 done, one needs you").waitFor();
  await dialog
    .getByText("drover cluster import again --kubeconfig FILE --resume --as-new")
    .waitFor();
  await visitor.expectAccessible("the import of a cluster that is managed already");
  await dialog.getByRole("link", { name: "Open edge" }).click();
  await page.getByRole("heading", { name: "edge", level: 1 }).waitFor();
  expect(await page.getByText(NAMED).count()).toBe(0);

  for (const path of ["/c/again", "/c/again/conditions", "/c/again/nodes"]) {
    await page.goto(path);
    await page.getByText(NAMED).waitFor();
    await visitor.expectAccessible(`${path} of a cluster that is managed already`);
  }
  visitor.expectQuiet();
  await visitor.leave();
});

test.each(["light", "dark"] as const)(
  "in %s the ways on can be used in any window",
  async (theme) => {
    const visitor = await world.visitor(theme);
    const { page } = visitor;
    await visitor.signIn();
    const { data } = await visitor.api<{ data: { id: string }[] }>(
      "GET",
      "/v3/clusters?name=again",
    );
    mkdirSync(SCREENS, { recursive: true });
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 900 });
      const addresses = { page: "/c/again", import: `/clusters?import=${data[0]?.id}` };
      for (const [name, address] of Object.entries(addresses)) {
        await page.goto(address);
        await page.getByText(NAMED).waitFor();
        await visitor.expectAccessible(`${name}, ${theme}, ${width}`);
        await page.screenshot({ path: join(SCREENS, `managed-${name}-${width}-${theme}.png`) });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        expect(wide).toBeLessThanOrEqual(width);
      }
    }
    visitor.expectQuiet();
    await visitor.leave();
  },
);

test("an owner who may not see the other entry reads that there is one, and not which", {
  meta: { guarantee: "secrecy" },
}, async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn("", "olive", OWNERS_PASSWORD);
  await page.goto("/c/again");
  await page
    .getByText("This cluster is managed already, by an entry that you may not see.")
    .waitFor();
  await page.getByText("ask an administrator to give it a new agent.").waitFor();
  expect(await page.locator("body").innerText()).not.toContain("edge");
  expect(await page.getByRole("button", { name: /gives .* a new agent/ }).count()).toBe(0);
  await visitor.expectAccessible("a cluster that is managed by an entry that is not visible");
  visitor.expectQuiet();
  await visitor.leave();
});

test("the shown commands work: a new agent for the first entry, then a clone", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await page.goto("/c/again");
  await follow(await copied(visitor, "Copy the command that gives edge a new agent"));
  await page.goto("/clusters");
  await visitor.row("edge").getByText("Active").waitFor();

  await page.goto("/c/again");
  await page.getByText(NAMED).waitFor();
  await follow(await copied(visitor, "Copy the command that imports a clone"));
  await page.getByText(NAMED).waitFor({ state: "detached" });
  await page.getByText("Active", { exact: true }).first().waitFor();
  visitor.expectQuiet();
  await visitor.leave();
});

test("the entry that was made by mistake is removed from the page that says so", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await visitor.row("again").getByText("Active").waitFor();
  await world.run(await visitor.importCommand("third"));
  const { data } = await visitor.api<{ data: { id: string }[] }>("GET", "/v3/clusters?name=third");
  await page.goto(`/clusters?import=${data[0]?.id}`);
  await page.getByText(/^This cluster is managed already, as (edge|again)\.$/).waitFor();
  // One way to remove it is enough.
  expect(await page.getByRole("button", { name: "Cancel import…" }).count()).toBe(0);
  await page.getByRole("button", { name: "Remove third…" }).click();
  const dialog = page.getByRole("dialog", { name: /Remove third/ });
  await dialog.getByLabel("Type third").fill("third");
  await dialog.getByRole("button", { name: "Remove", exact: true }).click();
  await page.goto("/clusters");
  await visitor.row("third").waitFor({ state: "detached" });
  visitor.expectQuiet();
  await visitor.leave();
});
