/** Missing rights are shown before an attempt, with the users who can grant them. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { type Visitor, World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "2"]);
const PASSWORD = "password-of-a-user";
const DENIAL = /You may not import clusters: .* Ask an administrator\.$/;

beforeAll(async () => {
  await world.start();
  const visitor = await world.visitor();
  await visitor.signIn();
  await world.run(await visitor.importCommand("orchard"));
  await visitor.row("orchard").getByText("Active").waitFor();
  const user = (username: string, name: string) => ({ username, name, password: PASSWORD });
  await visitor.makeUser(user("nina", "Nina"));
  const cluster = "orchard";
  await visitor.makeUser(user("olive", "Olive"), { cluster, role: "cluster-owner" });
  await visitor.makeUser(user("mia", "Mia"), { cluster, role: "cluster-member" });
  await visitor.leave();
});
afterAll(() => world.end());

test("a user without a role sees who grants one, and finds Import locked before typing a name", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn("", "nina", PASSWORD);
  await page.getByText("No clusters that you may see").waitFor();
  await page.getByText("Owners of a cluster and administrators give roles.").waitFor();
  const button = page.getByRole("button", { name: "Import cluster" });
  await page.locator("button[aria-disabled=true]", { hasText: "Import cluster" }).waitFor();
  // The page offers it once, and not as the primary action.
  expect(await button.count()).toBe(1);
  await button.hover();
  await page.getByRole("tooltip").getByText(DENIAL).waitFor();
  await visitor.expectAccessible("a denied button with its reason");
  await button.click({ force: true });
  expect(await page.getByRole("dialog").count()).toBe(0);

  await page.keyboard.press("Control+k");
  await page.getByPlaceholder("Cluster, page or action").fill(">import");
  await page.getByRole("option", { name: /You have no right to it/ }).click();
  const dialog = page.getByRole("dialog", { name: "Import a cluster" });
  await dialog.getByText(DENIAL).waitFor();
  expect(await dialog.getByRole("textbox").count()).toBe(0);
  await visitor.expectAccessible("the denied import dialog");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  visitor.expectQuiet();
  await visitor.leave();
});

test("a member finds Remove locked, with the owner who can grant the right", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn("", "mia", PASSWORD);
  await page.goto("/c/orchard");
  await page.getByRole("heading", { name: "orchard", level: 1 }).waitFor();
  await page.getByRole("button", { name: "More actions for orchard" }).click();
  const item = page.getByRole("menuitem", { name: /^Remove…/ });
  await item
    .getByText(/^You may not remove orchard: that needs the role Cluster Owner\./)
    .waitFor();
  await item.getByText(/ Ask .*Olive.* or an administrator\.$/).waitFor();
  expect(await item.getAttribute("aria-disabled")).toBe("true");
  await visitor.expectAccessible("a menu with a denied entry");
  await item.click({ force: true });
  expect(await page.getByRole("dialog").count()).toBe(0);
  visitor.expectQuiet();
  await visitor.leave();
});

/** Opens the menu of a node. */
async function nodeMenu(visitor: Visitor, node: string): Promise<void> {
  await visitor.page.getByRole("button", { name: `More actions for ${node}` }).click();
}

test("a member finds what changes a node locked, with the owner who can grant the right", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn("", "mia", PASSWORD);
  await page.goto("/c/orchard/nodes");
  await nodeMenu(visitor, "node-1");
  for (const name of [/^Cordon/, /^Delete…/]) {
    const item = page.getByRole("menuitem", { name });
    await item.getByText(/^You may not change nodes of orchard: .*Olive.*$/).waitFor();
    expect(await item.getAttribute("aria-disabled")).toBe("true");
    await item.click({ force: true });
  }
  await visitor.expectAccessible("a node's menu with denied entries");
  expect(await page.getByRole("dialog").count()).toBe(0);
  await page.keyboard.press("Escape");
  expect(await page.getByText("Cordoned", { exact: true }).count()).toBe(0);
  visitor.expectQuiet();
  await visitor.leave();
});

test("an owner cordons, uncordons and deletes nodes", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn("", "olive", PASSWORD);
  await page.goto("/c/orchard/nodes");
  await nodeMenu(visitor, "node-1");
  await page.getByRole("menuitem", { name: "Cordon", exact: true }).click();
  await page.getByText("Cordoned", { exact: true }).waitFor();
  await nodeMenu(visitor, "node-1");
  await page.getByRole("menuitem", { name: "Uncordon", exact: true }).click();
  await page.getByText("Cordoned", { exact: true }).waitFor({ state: "detached" });
  await nodeMenu(visitor, "node-2");
  await page.getByRole("menuitem", { name: "Delete…", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Delete node-2?" });
  await visitor.expectAccessible("the dialog that deletes a node");
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await page
    .getByRole("button", { name: "More actions for node-2" })
    .waitFor({ state: "detached" });
  visitor.expectQuiet();
  await visitor.leave();
});

test("an owner finds Remove open", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn("", "olive", PASSWORD);
  await page.goto("/c/orchard");
  await page.getByRole("button", { name: "More actions for orchard" }).click();
  await page.getByRole("menuitem", { name: "Remove…", exact: true }).click();
  await page.getByRole("dialog", { name: /Remove orchard/ }).waitFor();
  visitor.expectQuiet();
  await visitor.leave();
});

test("a member finds out why a request is refused or allowed, and who may send it", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn("", "mia", PASSWORD);
  await page.goto("/c/orchard");
  await page.getByRole("link", { name: "Access" }).click();
  const form = page.getByRole("region", { name: "A request" });
  await form.getByLabel("Verb").fill("delete");
  await form.getByLabel("Resource").fill("nodes");
  await form.getByRole("button", { name: "Explain" }).click();
  await page.getByText("Missing: delete on nodes.").waitFor();
  await page.getByText(/^Owners: u-/).waitFor();
  await visitor.expectAccessible("a refusal that is explained");

  await form.getByLabel("Verb").fill("list");
  await form.getByRole("button", { name: "Explain" }).click();
  const allowed = page.getByRole("region", { name: "Allowed" });
  await allowed
    .getByText(/^ClusterRoleTemplateBinding .* gives the role cluster-member$/)
    .waitFor();
  await allowed
    .getByText(/^its rule allows get, list, watch on nodes, persistentvolumes$/)
    .waitFor();

  await form.getByLabel("Verb").fill("delete");
  await form.getByRole("button", { name: "List who may" }).click();
  await page
    .getByRole("region", { name: "Users" })
    .getByText(/^Olive, olive: /)
    .waitFor();
  await visitor.expectAccessible("those who may send a request");
  visitor.expectQuiet();
  await visitor.leave();
});
