/** The audit log for an administrator, and for an owner of one cluster. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { type Visitor, World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "2"]);
const OWNER_PASSWORD = "password-of-olive";

beforeAll(async () => {
  await world.start();
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await page.getByRole("button", { name: "Import cluster" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name", { exact: true }).fill("orchard");
  await dialog.getByRole("button", { name: "Get the command" }).click();
  await dialog.getByRole("button", { name: "Copy the import command" }).click();
  await world.run(await page.evaluate(() => navigator.clipboard.readText()));
  await dialog.getByText("orchard is Active").waitFor();
  await makeOwner(visitor);
  await visitor.leave();
});
afterAll(() => world.end());

/** Creates a user who owns the cluster, through the API of the page. */
async function makeOwner({ page }: Visitor): Promise<void> {
  await page.evaluate(async (password) => {
    const csrf = document.cookie.replace(/.*CSRF=([^;]*).*/, "$1");
    const made = async (path: string, body: object) => {
      const answer = await fetch(path, {
        method: "POST",
        headers: { "content-type": "application/json", "x-api-csrf": csrf },
        body: JSON.stringify(body),
      });
      if (answer.status !== 201) throw new Error(`${path}: ${await answer.text()}`);
      return (await answer.json()) as { id: string };
    };
    const clusters = await (await fetch("/v3/clusters?name=orchard")).json();
    const user = await made("/v3/users", { username: "olive", password });
    await made("/v3/clusterroletemplatebindings", {
      clusterId: clusters.data[0].id,
      roleTemplateId: "cluster-owner",
      userId: user.id,
    });
  }, OWNER_PASSWORD);
}

async function login({ page }: Visitor, name: string, password: string): Promise<void> {
  await page.goto("/");
  await page.getByLabel("User name").fill(name);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
}

test("a failed login shows with its user, address and result, and filters find it", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await login(visitor, "olive", "a-wrong-guess");
  await page.getByText("Wrong user name or password.").waitFor();
  visitor.complaints.length = 0;
  await visitor.signIn();
  await page.getByRole("link", { name: "Audit log" }).click();
  await page.getByRole("heading", { name: "Audit log", level: 1 }).waitFor();
  await page.getByRole("button", { name: "Failed logins" }).click();
  const row = page.getByRole("row", { name: /Login refused/ });
  await row.waitFor();
  expect(await row.count()).toBe(1);
  for (const cell of ["401", "olive", "127.0.0.1"]) {
    await row.getByRole("cell", { name: cell, exact: true }).waitFor();
  }

  // A filter is in the address, and a filter without a match is reported.
  const user = page.getByLabel("Filter by User name or id");
  await user.fill("nobody-like-this");
  await user.press("Enter");
  await page.getByText("No such event in the log").waitFor();
  expect(new URL(page.url()).search).toBe("?kind=failed-logins&user=nobody-like-this");
  await user.fill("olive");
  await user.press("Enter");
  await row.waitFor();
  const address = page.getByLabel("Filter by IP address");
  await address.fill("no address");
  await address.press("Enter");
  await page.getByText(/"address" must be an IP address/).waitFor();
  expect(visitor.complaints.filter((text) => !text.includes("400"))).toEqual([]);
  await visitor.leave();
});

test("older events are read page by page, and a narrow window shows the essential columns", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await page.goto("/audit");
  await page.getByRole("cell", { name: "admin", exact: true }).first().waitFor();
  const before = await page.getByRole("row").count();
  await page.getByRole("button", { name: "Show older events" }).click();
  await expect.poll(() => page.getByRole("row").count()).toBeGreaterThan(before);
  await page.setViewportSize({ width: 320, height: 640 });
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBe(320);
  await visitor.expectAccessible("audit log, narrow");
  visitor.expectQuiet();
  await visitor.leave();
});

test("an owner reads the events of the cluster, and sees who may read all others", {
  meta: { guarantee: "rights" },
}, async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await login(visitor, "olive", OWNER_PASSWORD);
  await visitor.row("orchard").getByText("Active").waitFor();
  await page.goto("/c/orchard");
  await page.getByRole("link", { name: "Audit log" }).click();
  await page.getByRole("cell", { name: "Agent registered" }).waitFor();
  expect(await page.getByRole("cell", { name: /^Login/ }).count()).toBe(0);
  visitor.expectQuiet();
  await page.goto("/audit");
  await page.getByText("You may not read these events.").waitFor();
  await page.getByText(/Owners of a cluster find its events/).waitFor();
  await visitor.leave();
});
