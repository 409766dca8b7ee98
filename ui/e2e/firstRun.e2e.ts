/** A server that has no clusters says what is to be done, and the list is grouped by labels later. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { SCREENS } from "./programs.ts";
import { World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "1"]);

beforeAll(() => world.start());
afterAll(() => world.end());

test("a new server asks for its address, tells of its certificate, and leads to an import", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  const steps = page.getByRole("region", { name: "First steps" });
  await steps.getByText("Only this computer does").waitFor();
  await steps.getByText("This server has an authority of its own").waitFor();
  await visitor.expectAccessible("the first steps");
  await page.screenshot({ path: `${SCREENS}/first-steps-light.png` });
  const address = steps.getByLabel("Address");
  expect(await address.inputValue()).toBe(world.server.url());
  await address.fill("http://drover.example");
  await steps.getByRole("button", { name: "Save" }).click();
  await steps.getByText("The address was not changed.").waitFor();
  visitor.complaints.length = 0;
  await address.fill("https://drover.example");
  await steps.getByRole("button", { name: "Save" }).click();
  await steps.getByText("Done").waitFor();
  await steps.getByRole("button", { name: "Change…" }).click();
  await address.fill(world.server.url());
  await steps.getByRole("button", { name: "Save" }).click();
  await steps.getByText("Only this computer does").waitFor();
  await steps.getByRole("button", { name: "Import first cluster" }).click();
  await page.getByRole("dialog").getByLabel("Name").waitFor();
  visitor.expectQuiet();
  await visitor.leave();
});

test("clusters are grouped by a label", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await world.run(await visitor.importCommand("orchard", { env: "test" }));
  await visitor.row("orchard").waitFor();
  await page.getByLabel("Group by").selectOption("env");
  await page.getByRole("rowheader", { name: /^env: test/ }).waitFor();
  await page.getByRole("rowheader", { name: /^Without env/ }).waitFor();
  expect(new URL(page.url()).search).toBe("?group=env");
  await page.reload();
  await page.getByRole("rowheader", { name: /^env: test/ }).waitFor();
  await visitor.expectAccessible("clusters by label");
  visitor.expectQuiet();
  await visitor.leave();
});
