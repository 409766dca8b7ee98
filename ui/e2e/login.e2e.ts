/** A login that has ended: users see why, and sign in again in the same browser. */

import { rmSync } from "node:fs";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PASSWORD, type Visitor, World } from "./world.ts";

const world = new World(["--nodes", "1"]);

beforeAll(() => world.start());
afterAll(() => world.end());

async function signInAgain(page: Page, password = PASSWORD): Promise<void> {
  await page.getByLabel("User name").fill("admin");
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Clusters", level: 1 }).waitFor();
}

/** Puts a login into the browser's cookies, which scripts of pages cannot. */
async function setLogin(visitor: Visitor, value: string): Promise<void> {
  const cookie = { url: world.server.url(), secure: true, sameSite: "Lax" } as const;
  await visitor.context.addCookies([
    { ...cookie, name: "R_SESS", value, httpOnly: true },
    { ...cookie, name: "__Host-CSRF", value: "of-this-login" },
  ]);
}

/** Changes something through the API with the login of the page. */
function write(page: Page, path: string, body: unknown): Promise<number> {
  return page.evaluate(
    async ([path, body]) => {
      const cookie = /__Host-CSRF=([^;]*)/.exec(document.cookie);
      const headers = { "content-type": "application/json", "x-api-csrf": cookie?.[1] ?? "" };
      return (await fetch(path, { method: "POST", headers, body })).status;
    },
    [path, JSON.stringify(body)] as const,
  );
}

test("a login that was ended in another tab is reported, and the same browser signs in again", async () => {
  const visitor = await world.visitor();
  await visitor.signIn();
  await visitor.freshness("Live");
  const second = await visitor.context.newPage();
  await second.goto("/clusters");
  await second.getByRole("heading", { name: "Clusters", level: 1 }).waitFor();
  expect(await write(second, "/v3/tokens?action=logout", {})).toBe(200);

  const { page } = visitor;
  // The reason is only known if the logout has not deleted the cookie before.
  await page.getByText(/login has ended/).waitFor();
  await visitor.expectAccessible("login after one that was ended");
  await signInAgain(page);
  // The other tab has the new login as well.
  await second.goto("/clusters");
  await second.getByRole("heading", { name: "Clusters", level: 1 }).waitFor();
  await visitor.leave();
});

test("an invalid cookie does not prevent signing in, also after a reload", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  // No page is open yet, whose requests would use up the refusal that says why.
  await setLogin(visitor, "token-aaaaa:bogus");
  await page.goto("/clusters");
  await page.getByText("The login has ended").waitFor();
  await setLogin(visitor, "garbled");
  await page.goto("/clusters?q=x");
  await page.getByText("The login cookie cannot be read.").waitFor();
  await page.reload();
  // The page reports only the wrong password.
  await page.getByLabel("User name").fill("admin");
  await page.getByLabel("Password", { exact: true }).fill("not the password");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("Wrong user name or password.").waitFor();
  await setLogin(visitor, "token-aaaaa:bogus");
  await signInAgain(page);
  await visitor.leave();
});

test("a password that is set in another session ends the login, and the new one works", async () => {
  const [here, there] = [await world.visitor(), await world.visitor()];
  await here.signIn();
  await here.freshness("Live");
  await there.signIn();
  const changed = "also only for browser tests";
  const change = (currentPassword: string, newPassword: string) =>
    write(there.page, "/v3/users?action=changepassword", { currentPassword, newPassword });
  expect(await change(PASSWORD, changed)).toBe(200);
  await here.page.getByText("a new password or an administrator").waitFor();
  await signInAgain(here.page, changed);
  expect(await change(changed, PASSWORD)).toBe(200);
  await here.page.getByText("a new password or an administrator").waitFor();
  await Promise.all([here.leave(), there.leave()]);
});

test("after a restart of the server with other keys the same browser can sign in", async () => {
  const visitor = await world.visitor();
  await visitor.signIn();
  await visitor.freshness("Live");
  await world.server.kill();
  rmSync(world.server.data, { recursive: true });
  await world.startServer();
  await visitor.page.getByText(/login has ended/).waitFor();
  await signInAgain(visitor.page);
  await visitor.leave();
});
