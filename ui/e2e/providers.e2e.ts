/** Signing in on the pages of an identity provider. */

import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { OidcProvider, SCREENS } from "./programs.ts";
import { World } from "./world.ts";

const world = new World(["--nodes", "1"]);
const provider = new OidcProvider();

beforeAll(async () => {
  await world.start();
  await provider.start(world.folder, `${world.server.url()}/verify-auth`, {
    ada: { name: "Ada Lovelace", preferred_username: "ada", groups: ["ops"] },
    root: { name: "Root", preferred_username: "root" },
  });
});
afterAll(async () => {
  await provider.kill();
  await world.end();
});

/** Fills the provider's own forms. */
async function logInThere(page: Page, name: string): Promise<void> {
  await page.locator("[name=login]").fill(name);
  await page.locator("[name=password]").fill("any");
  await page.locator("button[type=submit]").click();
  await page.getByRole("button", { name: "Continue" }).click();
}

test("a provider is tested in the browser, and then people sign in with it", async () => {
  const admin = await world.visitor();
  await admin.signIn();
  const { page: adminPage } = admin;
  await adminPage.goto("/providers");
  await adminPage.getByRole("button", { name: "Set up OpenID Connect…" }).click();
  const dialog = adminPage.getByRole("dialog");
  await dialog.getByLabel("Issuer").fill(provider.issuer);
  await dialog.getByLabel("Client ID").fill(provider.clientId);
  await dialog.getByLabel("Client secret").fill("a wrong one");
  expect(await dialog.getByLabel("Rancher URL").inputValue()).toBe(
    `${world.server.url()}/verify-auth`,
  );
  const begin = dialog.getByRole("button", { name: "Begin the test" });
  /** Logs in at the provider in another tab; returns the code that it leads to. */
  const codeOf = async (name: string): Promise<[Page, string]> => {
    await begin.click();
    const opening = admin.context.waitForEvent("page");
    await dialog.getByRole("link", { name: "Log in at OpenID Connect" }).click();
    const there = await opening;
    await logInThere(there, name);
    await there.getByRole("heading", { name: "You logged in" }).waitFor();
    return [there, await there.locator("code").innerText()];
  };
  const [, useless] = await codeOf("root");
  await dialog.getByLabel("Code that you see then").fill(useless);
  await dialog.getByRole("button", { name: "Test and enable" }).click();
  await dialog.getByText("It does not work so far, and nothing was changed.").waitFor();
  await admin.expectAccessible("setting up a provider with pages");
  admin.complaints.length = 0;
  // The provider does not remember who logged in.
  await admin.context.clearCookies({ domain: new URL(provider.issuer).hostname, name: /^_/ });
  await dialog.getByLabel("Client secret").fill(provider.clientSecret);
  const [there, code] = await codeOf("root");
  await dialog.getByLabel("Code that you see then").fill(code);
  await dialog.getByRole("button", { name: "Test and enable" }).click();
  const line = adminPage.getByRole("listitem").filter({ hasText: "OpenID Connect" });
  await line.getByText("Enabled").waitFor();
  // The tab that showed the code has the new login, too.
  await there.goto("/clusters");
  await there.getByRole("heading", { name: "Clusters", level: 1 }).waitFor();
  admin.expectQuiet();
  await admin.leave();

  const ada = await world.visitor();
  const { page } = ada;
  await page.goto("/clusters?q=north");
  const link = page.getByRole("link", { name: "Continue with OpenID Connect" });
  await link.waitFor();
  await ada.expectAccessible("the login page with a provider");
  await page.screenshot({ path: `${SCREENS}/login-provider-light.png` });
  await link.click();
  await logInThere(page, "ada");
  // Back where the user wanted to go, as the user whom the provider knows.
  await page.waitForURL("**/clusters?q=north");
  await page.getByRole("heading", { name: "Clusters", level: 1 }).waitFor();
  const me = await ada.api<{ data: { name: string }[] }>("GET", "/v3/users?me=true");
  expect(me.data[0]?.name).toBe("Ada Lovelace");
  // The provider's own page misses its fonts here; nothing else may be wrong.
  expect(ada.complaints.filter((text) => !text.includes("ERR_NAME_NOT_RESOLVED"))).toEqual([]);
  await ada.leave();
});

test("a login that failed says why, and a code is shown for a terminal", async () => {
  const visitor = await world.visitor("dark");
  const { page } = visitor;
  await page.goto("/verify-auth?code=x&state=l-other");
  await page.getByText("was begun in another browser").waitFor();
  await page.getByLabel("User name").waitFor();
  await visitor.expectAccessible("a login that failed");
  await page.screenshot({ path: `${SCREENS}/login-failed-dark.png` });
  // Words of a crafted link are not shown.
  await page.goto("/login?failed=%3Cb%3Ecall%20us%3C%2Fb%3E");
  await page.getByLabel("User name").waitFor();
  expect(await page.getByRole("alert").count()).toBe(0);

  await page.goto(`/v1-login/oidc?challenge=${"a".repeat(43)}&port=4321`);
  await logInThere(page, "ada");
  await page.getByRole("heading", { name: "Log in on the command line" }).waitFor();
  const go = page.getByRole("link", { name: "Continue in the terminal" });
  expect(await go.getAttribute("href")).toMatch(/^http:\/\/127\.0\.0\.1:4321\/\?code=\w{20}$/);
  await visitor.expectAccessible("the code for a terminal");
  await page.screenshot({ path: `${SCREENS}/login-code-dark.png` });
  expect((await visitor.context.cookies()).some(({ name }) => name === "R_SESS")).toBe(false);
  await visitor.leave();
});
