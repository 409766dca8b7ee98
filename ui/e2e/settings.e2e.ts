/** Settings of the server: changed, refused with the reason, set back. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "1"]);

beforeAll(() => world.start());
afterAll(() => world.end());

test("a setting is changed, and set back to its default", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await page.getByRole("link", { name: "Settings" }).click();
  const row = page.getByRole("row", { name: /^password-min-length/ });
  await row.getByText("12").waitFor();
  const dialog = page.getByRole("dialog");
  const change = page.getByRole("button", { name: "Change password-min-length…" });
  await change.click();
  await dialog.getByLabel("Value").fill("not a number");
  await dialog.getByRole("button", { name: "Change", exact: true }).click();
  await dialog.getByText("Nothing was changed.").waitFor();
  expect(await dialog.getByLabel("Value").inputValue()).toBe("not a number");
  visitor.complaints.length = 0;
  await dialog.getByLabel("Value").fill("16");
  await dialog.getByRole("button", { name: "Change", exact: true }).click();
  await row.getByText("changed 16").waitFor();
  const held = await visitor.api<{ value: string }>("GET", "/v3/settings/password-min-length");
  expect(held.value).toBe("16");

  await change.click();
  await dialog.getByRole("button", { name: "Back to the default" }).click();
  await row.getByText("changed").waitFor({ state: "detached" });
  await row.getByText("12").waitFor();
  visitor.expectQuiet();
  await visitor.leave();
});
