/**
 * A project is made and handed to a second user: project, namespace, quota, user, role; then that
 * user works in it. And users of the server: disabled, given roles, deleted.
 */

import { afterAll, beforeAll, expect, test } from "vitest";
import { type Visitor, World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "1"]);
const OWN_PASSWORD = "a password of Ada's own";

beforeAll(async () => {
  await world.start();
  const visitor = await world.visitor();
  await visitor.signIn();
  await world.run(await visitor.importCommand("orchard"));
  await visitor.row("orchard").getByText("Active").waitFor();
  await visitor.leave();
});
afterAll(() => world.end());

async function opened(path: string): Promise<Visitor> {
  const visitor = await world.visitor();
  await visitor.signIn();
  await visitor.page.goto(path);
  return visitor;
}

test("a project is handed to a new user, who works in it and nowhere else", async () => {
  const visitor = await opened("/users");
  const { page } = visitor;
  const dialog = page.getByRole("dialog");
  await page.getByRole("button", { name: "Create user" }).click();
  await dialog.getByLabel("User name").fill("ada");
  await dialog.getByLabel("Name", { exact: true }).fill("Ada");
  await dialog.getByRole("button", { name: "Create", exact: true }).click();
  await dialog.getByText("Ada can log in").waitFor();
  const password = (await dialog.locator("code").innerText()).trim();
  await dialog.getByRole("button", { name: "Done" }).click();
  await page.getByRole("row", { name: /Ada ada/ }).waitFor();

  await page.goto("/c/orchard/projects");
  await page.getByRole("link", { name: "Default", exact: true }).waitFor();
  await page.getByRole("button", { name: "Create project" }).click();
  await dialog.getByLabel("Name").fill("shop");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "shop", level: 1 }).waitFor();

  await page.getByRole("button", { name: "Create namespace" }).click();
  await dialog.getByLabel("Name").fill("shop-web");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "shop-web" }).waitFor();

  await page.getByRole("button", { name: "Add member" }).click();
  await dialog.getByLabel("User or group").fill("ada");
  await dialog.getByRole("radiogroup", { name: "Found" }).getByRole("radio").check();
  await dialog.getByRole("radio", { name: /^Project Member/ }).check();
  const effect = dialog.getByRole("region", { name: "What this does" });
  await effect.getByText(/^Ada gains Project Member.* in shop, at once/).waitFor();
  await dialog.getByRole("button", { name: "Give role" }).click();
  const members = page.getByRole("region", { name: /^Members/ });
  await members.getByText("Project Member", { exact: true }).waitFor();
  visitor.expectQuiet();

  const ada = await world.visitor();
  await ada.signIn("", "ada", password);
  await ada.page.getByLabel("Current password").fill(password);
  await ada.page.getByLabel("New password").fill(OWN_PASSWORD);
  await ada.page.getByRole("button", { name: "Change password" }).click();
  await ada.page.getByRole("button", { name: "Go on" }).click();
  await ada.row("orchard").getByText("Active").waitFor();
  await ada.page.goto("/c/orchard/projects");
  await ada.page.getByRole("link", { name: "shop", exact: true }).click();
  await ada.page.getByRole("link", { name: "shop-web" }).waitFor();
  expect(await ada.page.getByRole("link", { name: "Default", exact: true }).count()).toBe(0);
  // A member may not hand the project on, and is told so.
  for (const [name, reason] of [
    ["Delete…", /You may not delete this project/],
    ["Add member", /You may not give roles here/],
    ["Edit", /You may not change the quota/],
  ] as const) {
    const button = ada.page.getByRole("button", { name, disabled: true });
    await button.hover();
    await ada.page.getByText(reason).waitFor();
  }
  const made = await ada.page.evaluate(async () => {
    const csrf = document.cookie.replace(/.*CSRF=([^;]*).*/, "$1");
    const { data } = await (await fetch("/v3/clusters?name=orchard")).json();
    const post = async (namespace: string) => {
      const path = `/k8s/clusters/${data[0].id}/api/v1/namespaces/${namespace}/configmaps`;
      const body = JSON.stringify({ metadata: { name: "made-by-ada" } });
      const headers = { "content-type": "application/json", "x-api-csrf": csrf };
      return (await fetch(path, { method: "POST", headers, body })).status;
    };
    return [await post("shop-web"), await post("default")];
  });
  expect(made).toEqual([201, 403]);
  await ada.leave();

  // What is taken is taken at once.
  await members.getByRole("button", { name: /^Take the role Project Member from Ada/ }).click();
  await dialog.getByRole("button", { name: "Take it" }).click();
  await members.getByText("Project Member", { exact: true }).waitFor({ state: "detached" });
  await visitor.leave();
});

test("a role in a cluster is given to a user, and taken again", async () => {
  const visitor = await opened("/c/orchard/members");
  const { page } = visitor;
  const password = "a password of Cleo";
  await visitor.makeUser({ username: "cleo", password, name: "Cleo" });
  const dialog = page.getByRole("dialog");
  await page.getByRole("button", { name: "Add member" }).click();
  await dialog.getByLabel("User or group").fill("cleo");
  await dialog.getByRole("radiogroup", { name: "Found" }).getByRole("radio").check();
  await dialog.getByRole("radio", { name: /^Cluster Owner/ }).check();
  await dialog.getByRole("button", { name: "Give role" }).click();
  const members = page.getByRole("region", { name: /^Members/ });
  const line = members.getByRole("listitem").filter({ hasText: "Cleo" });
  await line.getByText("Cluster Owner", { exact: true }).waitFor();

  const cleo = await world.visitor();
  await cleo.signIn("", "cleo", password);
  await cleo.row("orchard").getByText("Active").waitFor();
  await line.getByRole("button", { name: /^Take the role Cluster Owner from Cleo/ }).click();
  await dialog.getByRole("button", { name: "Take it" }).click();
  await line.waitFor({ state: "detached" });
  await cleo.page.reload();
  await cleo.page.getByRole("heading", { name: "Clusters", level: 1 }).waitFor();
  await cleo.row("orchard").waitFor({ state: "detached" });
  visitor.expectQuiet();
  await cleo.leave();
  await visitor.leave();
});

test("a project has a quota, and namespaces move in and out", async () => {
  await world.run("kubectl create namespace stray");
  const visitor = await opened("/c/orchard/projects");
  const { page } = visitor;
  const dialog = page.getByRole("dialog");
  await page.getByText(/In no project:.*stray/).waitFor();
  await page.getByRole("button", { name: "Create project" }).click();
  await dialog.getByLabel("Name").fill("limited");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "limited", level: 1 }).waitFor();
  await page.getByRole("button", { name: "Move in…" }).click();
  await dialog.getByLabel("Namespace").selectOption("stray");
  await dialog.getByRole("button", { name: "Move" }).click();
  await page.getByText("Moved stray to limited").waitFor();
  await page.getByRole("link", { name: "stray" }).waitFor();

  const quota = page.getByRole("region", { name: /^Quota/ });
  await quota.getByRole("button", { name: "Edit" }).click();
  await dialog.getByLabel("Pods of the project").fill("20");
  await dialog.getByRole("button", { name: "Save" }).click();
  // Without a default no namespace could say what it has of it: what is typed stays.
  await dialog.getByText("Nothing was changed.").waitFor();
  expect(await dialog.getByLabel("Pods of the project").inputValue()).toBe("20");
  await dialog.getByLabel("Pods of each namespace").fill("5");
  await dialog.getByRole("button", { name: "Save" }).click();
  await quota.getByText("5 of 20").waitFor();

  await page.getByRole("button", { name: "Actions for stray" }).click();
  await page.getByRole("menuitem", { name: "Move…" }).click();
  await dialog.getByLabel("Project").selectOption("No project");
  await dialog.getByRole("button", { name: "Move" }).click();
  await page.getByRole("link", { name: "stray" }).waitFor({ state: "detached" });

  await page.getByRole("button", { name: "Delete…" }).click();
  await dialog.getByText("It has no namespaces.").waitFor();
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("Deleting limited").waitFor();
  await page.getByRole("link", { name: "limited", exact: true }).waitFor({ state: "detached" });
  await visitor.leave();
});

test("a user is disabled, gets a global role and a password, and is deleted", async () => {
  const visitor = await opened("/clusters");
  const { page } = visitor;
  await visitor.makeUser({ username: "ben", password: "a password of Ben", name: "Ben" });
  await page.getByRole("link", { name: "Users" }).click();
  const row = page.getByRole("row", { name: /Ben ben/ });
  const dialog = page.getByRole("dialog");
  const act = async (name: string) => {
    await page.getByRole("button", { name: "Actions for Ben" }).click();
    await page.getByRole("menuitem", { name }).click();
  };
  await row.getByText("Active").waitFor();
  await act("Disable");
  await row.getByText("Disabled").waitFor();
  await act("Enable");
  await row.getByText("Active").waitFor();

  await act("Global roles…");
  await dialog.getByLabel("Another role").selectOption("Manage Users");
  await dialog.getByRole("button", { name: "Give role" }).click();
  await dialog.getByRole("button", { name: "Take the role Manage Users" }).waitFor();
  await dialog.getByRole("button", { name: "Done" }).click();
  await row.getByText(/Manage Users/).waitFor();

  await act("Set password…");
  await dialog.getByRole("button", { name: "Set password" }).click();
  const password = (await dialog.locator("code").innerText()).trim();
  await dialog.getByRole("button", { name: "Done" }).click();
  visitor.expectQuiet();

  const ben = await world.visitor();
  await ben.signIn("", "ben", password);
  await ben.page.getByLabel("Current password").waitFor();
  await ben.leave();

  await act("Delete…");
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await row.waitFor({ state: "detached" });
  // Nobody cuts themselves off.
  await page.getByRole("button", { name: /^Actions for .*[Aa]dmin/ }).click();
  await page.getByText("Nobody can do this to themselves.").first().waitFor();
  await visitor.leave();
});

test("a role is made, given, changed and deleted", async () => {
  const visitor = await opened("/users/roles");
  const { page } = visitor;
  const dialog = page.getByRole("dialog");
  await page.getByRole("radio", { name: "In projects" }).check();
  const line = page.getByRole("listitem").filter({ hasText: "Log readers" }).first();
  await page.getByRole("button", { name: "New role" }).click();
  await dialog.getByLabel("Name", { exact: true }).fill("Log readers");
  await dialog.getByRole("button", { name: "Add rule" }).click();
  const create = dialog.getByRole("button", { name: "Create", exact: true });
  expect(await create.getAttribute("aria-disabled")).toBe("true");
  await dialog.getByLabel("Resources").fill("pods, pods/log");
  await visitor.expectAccessible("making a role");
  await create.click();
  await line.waitFor();
  const made = await visitor.api<{ data: { rules: unknown; context: string }[] }>(
    "GET",
    "/v3/roletemplates?name=Log%20readers",
  );
  const verbs = ["get", "list", "watch"];
  expect(made.data[0]).toMatchObject({
    context: "project",
    rules: [{ verbs, resources: ["pods", "pods/log"], apiGroups: [""] }],
  });

  await line.locator("summary").click();
  await line.getByRole("button", { name: "Change…" }).click();
  await dialog.getByRole("button", { name: "Add rule" }).click();
  await dialog.getByRole("group", { name: "Rule 2" }).getByLabel("Resources").fill("configmaps");
  await dialog.getByRole("button", { name: "Save" }).click();
  await line.getByText("get, list, watch on configmaps").waitFor();

  // A role in use is not deleted, and the answer says why.
  await page.goto("/c/orchard/projects/Default");
  await page.getByRole("button", { name: "Add member" }).click();
  await dialog.getByLabel("User or group").fill("admin");
  await dialog.getByRole("radiogroup", { name: "Found" }).getByRole("radio").first().check();
  await dialog.getByRole("radio", { name: /^Log readers/ }).check();
  await dialog.getByRole("button", { name: "Give role" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.goto("/users/roles");
  await page.getByRole("radio", { name: "In projects" }).check();
  await line.locator("summary").click();
  await line.getByRole("button", { name: "Delete…" }).click();
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await dialog.getByText("It is still there.").waitFor();
  visitor.complaints.length = 0;
  await dialog.getByRole("button", { name: "Keep" }).click();
  await page.goto("/c/orchard/projects/Default");
  await page.getByRole("button", { name: /^Take the role Log readers/ }).click();
  await dialog.getByRole("button", { name: "Take it" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.goto("/users/roles");
  await page.getByRole("radio", { name: "In projects" }).check();
  await line.locator("summary").click();
  await line.getByRole("button", { name: "Delete…" }).click();
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await line.waitFor({ state: "detached" });
  visitor.expectQuiet();
  await visitor.leave();
});
