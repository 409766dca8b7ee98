/** Changes of own passwords: required ones, and voluntary ones. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { type Visitor, World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "1"]);
const GIVEN = "given-by-an-administrator";
const CHOSEN = "chosen-by-the-user";

beforeAll(() => world.start());
afterAll(() => world.end());

async function change({ page }: Visitor, current: string, next: string): Promise<void> {
  await page.getByLabel("Current password").fill(current);
  await page.getByLabel("New password").fill(next);
  await page.getByRole("button", { name: "Change password" }).click();
}

test("a user who must change the password sees nothing else until it is changed, then the requested page", async () => {
  const administrator = await world.visitor();
  await administrator.signIn();
  await administrator.makeUser({ username: "paul", password: GIVEN, mustChangePassword: true });
  await administrator.leave();

  const visitor = await world.visitor();
  const { page } = visitor;
  await page.goto("/audit");
  await page.getByLabel("User name").fill("paul");
  await page.getByLabel("Password", { exact: true }).fill(GIVEN);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Set a new password", level: 1 }).waitFor();
  await page.locator("input[name=current]:focus").waitFor();
  await visitor.expectAccessible("setting the first password");
  await page.goto("/clusters");
  await page.getByRole("heading", { name: "Set a new password", level: 1 }).waitFor();
  expect(await page.getByRole("navigation").count()).toBe(0);

  await change(visitor, GIVEN, "short");
  await page.getByText(/New password .*12 characters/).waitFor();
  await page.locator("input[name=new]:focus").waitFor();
  await change(visitor, "a wrong guess", CHOSEN);
  await page.getByText("That is not your current password.").waitFor();
  await visitor.expectAccessible("a password that was refused");
  visitor.complaints.length = 0;
  await change(visitor, GIVEN, CHOSEN);
  await page.getByText("Your password is changed.").waitFor();
  await page.getByRole("button", { name: "Go on" }).click();
  await page.getByRole("heading", { name: "Clusters", level: 1 }).waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "Clusters", level: 1 }).waitFor();
  visitor.expectQuiet();
  await visitor.leave();
});

test("a user changes the password from the menu, and reads which logins ended and how many tokens go on", {
  meta: { guarantee: "revocation" },
}, async () => {
  const administrator = await world.visitor();
  await administrator.signIn();
  await administrator.makeUser({ username: "rosa", password: GIVEN });
  await administrator.leave();
  const elsewhere = await world.visitor();
  await elsewhere.signIn("", "rosa", GIVEN);
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn("", "rosa", GIVEN);
  await visitor.api("POST", "/v3/tokens", { description: "for a program" });
  await page.getByRole("button", { name: /^You: / }).click();
  await page.getByRole("menuitem", { name: "Change password" }).click();
  await page.getByRole("heading", { name: "Your password", level: 1 }).waitFor();
  await page.getByText("Your other logins end at once; this one stays.").waitFor();
  await change(visitor, GIVEN, CHOSEN);
  await page.getByText(/^1 other login of yours ended\. 1 token of yours goes on/).waitFor();
  visitor.expectQuiet();
  // This login stays valid, the other does not.
  await page.getByRole("link", { name: "All clusters" }).last().click();
  await page.getByRole("heading", { name: "Clusters", level: 1 }).waitFor();
  await elsewhere.page.goto("/audit");
  await elsewhere.page.getByRole("heading", { name: "Sign in" }).waitFor();
  await elsewhere.leave();
  await visitor.leave();
});
