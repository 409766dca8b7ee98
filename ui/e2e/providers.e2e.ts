/** Signing in on the pages of an identity provider. */

import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { OidcProvider, SCREENS } from "./programs.ts";
import { World } from "./world.ts";

const world = new World(["--nodes", "1"]);
const provider = new OidcProvider();
const CONFIG = "/v3/oidcConfigs/oidc";

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
  const config = {
    issuer: provider.issuer,
    clientId: provider.clientId,
    clientSecret: provider.clientSecret,
    rancherUrl: `${world.server.url()}/verify-auth`,
  };
  const begun = await admin.api<{ redirectUrl: string }>(
    "POST",
    `${CONFIG}?action=configureTest`,
    config,
  );
  const there = await admin.context.newPage();
  await there.goto(begun.redirectUrl);
  await logInThere(there, "root");
  await there.getByRole("heading", { name: "You logged in" }).waitFor();
  const code = await there.locator("code").innerText();
  await admin.page.evaluate(
    async ([config, code, path]) => {
      const csrf = document.cookie.replace(/.*CSRF=([^;]*).*/, "$1");
      const response = await fetch(`${path}?action=testAndApply`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-api-csrf": csrf },
        body: JSON.stringify({ oidcConfig: config, code, enabled: true }),
      });
      if (!response.ok) throw new Error(await response.text());
    },
    [config, code.trim(), CONFIG] as const,
  );
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
