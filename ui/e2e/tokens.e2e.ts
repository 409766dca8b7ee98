/** Tokens of a user: made for one cluster, used by a program, ended. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "1"]);

beforeAll(() => world.start());
afterAll(() => world.end());

test("a token for one cluster works there and nowhere else, until it is ended", {
  meta: { guarantee: "revocation" },
}, async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await world.run(await visitor.importCommand("orchard"));
  await visitor.row("orchard").getByText("Active").waitFor();
  await page.getByRole("button", { name: /^You: / }).click();
  await page.getByRole("menuitem", { name: "Your tokens" }).click();
  await page.getByRole("row", { name: /This browser/ }).waitFor();

  const dialog = page.getByRole("dialog");
  await page.getByRole("button", { name: "Create token" }).click();
  await dialog.getByLabel("Description").fill("pipeline");
  await dialog.getByLabel("Lifetime").selectOption("30 days");
  await dialog.getByLabel("Cluster").selectOption("orchard");
  await dialog.getByRole("button", { name: "Create", exact: true }).click();
  const token = (await dialog.locator("code").innerText()).trim();
  await dialog.getByRole("button", { name: "Done" }).click();
  const row = page.getByRole("row", { name: /pipeline/ });
  await row.getByText("cluster orchard").waitFor();
  expect(await page.content()).not.toContain(token);

  const { data } = await visitor.api<{ data: { id: string }[] }>(
    "GET",
    "/v3/clusters?name=orchard",
  );
  const program = await world.visitor();
  const status = async (path: string) => {
    const headers = { authorization: `Bearer ${token}` };
    return (await program.context.request.get(path, { headers })).status();
  };
  const inside = `/k8s/clusters/${data[0]?.id}/api/v1/namespaces`;
  expect([await status(inside), await status("/v3/users")]).toEqual([200, 401]);

  await row.getByRole("button", { name: "End pipeline…" }).click();
  await dialog.getByRole("button", { name: "End", exact: true }).click();
  await row.waitFor({ state: "detached" });
  expect(await status(inside)).toBe(401);
  visitor.expectQuiet();
  await program.leave();
  await visitor.leave();
});
