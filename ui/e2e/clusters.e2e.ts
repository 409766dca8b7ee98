/** The first hour: sign in, import a cluster with the shown command, inspect it, remove it. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "./programs.ts";
import { type Visitor, World } from "./world.ts";

const world = new World(["--clusters", "2", "--nodes", "3", "--pods", "12"]);

beforeAll(() => world.start());
afterAll(() => world.end());

/** Opens the import dialog and gets the command for a new cluster. */
async function commandFor(visitor: Visitor, name: string): Promise<string> {
  const { page } = visitor;
  await page.getByRole("button", { name: "Import cluster" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name", { exact: true }).fill(name);
  await dialog.getByRole("button", { name: "Get the command" }).click();
  await dialog.getByRole("button", { name: "Copy the import command" }).click();
  return page.evaluate(() => navigator.clipboard.readText());
}

test("a wrong password is reported, and the typed text stays", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await page.goto("/");
  await page.getByLabel("User name").fill("admin");
  await page.getByLabel("Password", { exact: true }).fill("not the password");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("Wrong user name or password.").waitFor();
  expect(await page.getByLabel("User name").inputValue()).toBe("admin");
  await visitor.expectAccessible("login with a refusal");
  await visitor.leave();
});

test("an address that leads each machine to itself is warned of before the import", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await page.getByRole("button", { name: "Import cluster" }).click();
  const dialog = page.getByRole("dialog");
  await dialog
    .getByText(/Agents on other machines cannot reach https:\/\/localhost:\d+\./)
    .waitFor();
  await dialog.getByText(/^drover settings set server-url https:\/\/NAME:\d+$/).waitFor();
  await visitor.expectAccessible("import with an address of this machine alone");
  visitor.expectQuiet();
  await visitor.leave();
});

test("a cluster is imported by the shown command and becomes Active without a reload", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await visitor.freshness("Live");
  await page.evaluate(() => Object.assign(window, { loadedOnce: true }));
  const command = await commandFor(visitor, "north");
  expect(command).toContain("/v3/import/");
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Waiting for somebody to run the command.").waitFor();

  await world.run(command);
  await dialog.getByText("north is Active").waitFor();
  await dialog.getByText("All 6 done").waitFor();
  await dialog.getByText("3 nodes").waitFor();
  await dialog.getByRole("link", { name: "Open north" }).click();
  await page.getByRole("heading", { name: "north", level: 1 }).waitFor();
  await page.getByText("Active", { exact: true }).first().waitFor();
  // Twelve simulated ones and the agent.
  await page.getByText("13 running or placed").waitFor();

  // The page was never reloaded.
  await page.getByRole("link", { name: "All clusters" }).first().click();
  await visitor.row("north").getByText("Active").waitFor();
  expect(await page.evaluate(() => "loadedOnce" in window)).toBe(true);
  visitor.expectQuiet();
  await visitor.leave();
});

test("what the cluster does shows in every open browser", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await page.goto("/c/north/nodes");
  await page.getByRole("cell", { name: "node-1", exact: true }).waitFor();
  await world.run("kubectl cordon node-2");
  await page.getByText("Cordoned", { exact: true }).waitFor();
  await page.getByText("Accepts no new pods: it is cordoned.").waitFor();
  await world.run("kubectl uncordon node-2");
  await eventually("nobody is cordoned", async () => {
    expect(await page.getByText("Cordoned", { exact: true }).count()).toBe(0);
  });
  visitor.expectQuiet();
  await visitor.leave();
});

test("an address leads to its page after signing in again", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await page.goto("/c/north/conditions");
  await page.getByText("The agent's tunnel to this server is open.").waitFor();
  await visitor.context.clearCookies();
  await page.goto("/clusters?q=north");
  await page.getByText("your login has ended").waitFor();
  await page.getByLabel("User name").fill("admin");
  await page.getByLabel("Password", { exact: true }).fill("only-for-browser-tests");
  await page.getByRole("button", { name: "Sign in" }).click();
  await visitor.row("north").waitFor();
  expect(await page.getByLabel("Filter clusters").inputValue()).toBe("north");
  await visitor.leave();
});

test("an unavailable server is shown as Offline with the time, and everything recovers", async () => {
  const visitor = await world.visitor();
  await visitor.signIn();
  await visitor.freshness("Live");
  await world.server.kill();
  await visitor.freshness(/^Offline, as of \d\d:\d\d:\d\d$/);
  // The last known data stays.
  await visitor.row("north").waitFor();
  await world.startServer();
  await visitor.freshness("Live");
  await visitor.row("north").getByText("Active").waitFor();
  await visitor.leave();
});

test("a cluster whose agent disconnected is Unavailable, shows since when, and recovers", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await visitor.row("north").getByText("Active").waitFor();
  await world.sim.kill();
  await visitor.row("north").getByText("Unavailable").waitFor();
  await page.getByText(/^Agent silent since \d\d:\d\d:\d\d\.$/).waitFor();
  await page.getByRole("link", { name: "What to check" }).click();
  await page.getByText("Figures are from when it was.").waitFor();
  await page.getByText("kubectl -n cattle-system logs deploy/cattle-cluster-agent").waitFor();
  await world.sim.start();
  await page.getByText("The agent's tunnel to this server is open.").waitFor();
  visitor.expectQuiet();
  await visitor.leave();
});

test("a kubeconfig from the page works", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await page.goto("/c/north");
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Kubeconfig" }).click();
  const file = `${world.folder}/north.yaml`;
  await (await download).saveAs(file);
  const printed = await world.run(`kubectl --kubeconfig ${file} get nodes -o name`);
  expect(printed).toContain("node/node-1");
  visitor.expectQuiet();
  await visitor.leave();
});

test("a cluster is removed only after its name was typed, and disappears from the list", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  const command = await commandFor(visitor, "south");
  await world.run(command, "admin-1.kubeconfig");
  await page.getByRole("dialog").getByText("south is Active").waitFor();
  await page.getByRole("dialog").getByRole("link", { name: "Open south" }).click();
  await page.getByRole("button", { name: "More actions for south" }).click();
  await page.getByRole("menuitem", { name: "Remove…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("2 projects").waitFor();
  const remove = dialog.getByRole("button", { name: "Remove", exact: true });
  expect(await remove.getAttribute("aria-disabled")).toBe("true");
  await dialog.getByLabel("Type south").fill("sout");
  expect(await remove.getAttribute("aria-disabled")).toBe("true");
  await dialog.getByLabel("Type south").fill("south");
  await remove.click();
  await page.getByRole("heading", { name: "Clusters", level: 1 }).waitFor();
  await visitor.row("south").waitFor({ state: "detached" });
  await eventually("nothing of ours is left in the cluster", async () => {
    const left = await world.run("kubectl get ns -o name", "admin-1.kubeconfig");
    expect(left).not.toContain("cattle-system");
  });
  visitor.expectQuiet();
  await visitor.leave();
});

test("a cluster that does not respond is removed only by choice, and shows what stays in it", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await visitor.row("north").getByText("Active").waitFor();
  await world.sim.kill();
  await visitor.row("north").getByText("Unavailable").waitFor();
  await page.goto("/c/north");
  await page.getByRole("button", { name: "More actions for north" }).click();
  await page.getByRole("menuitem", { name: "Remove…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText(/^north does not respond since \d\d:\d\d:\d\d: /).waitFor();
  await dialog.getByText("ClusterRoleBinding drover-cluster-agent").waitFor();
  await visitor.expectAccessible("removal of a cluster that does not respond");
  await dialog.getByLabel("Type north").fill("north");
  const remove = dialog.getByRole("button", { name: "Remove", exact: true });
  expect(await remove.getAttribute("aria-disabled")).toBe("true");
  await dialog.getByRole("radio", { name: /^Detach: Like Force/ }).check();
  await dialog.getByRole("button", { name: "Detach", exact: true }).click();
  await visitor.row("north").waitFor({ state: "detached" });
  visitor.expectQuiet();
  await visitor.leave();
});
