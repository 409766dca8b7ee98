/** Cluster drivers: added by an address, with the reason where that fails; switched; removed. */

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { goDriver } from "./programs.ts";
import { PASSWORD, World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "1"]);
const DRIVER = "/kontainer-engine-driver-go";
const SECOND = "/v2/kontainer-engine-driver-go";

/** A web site with a driver, and with pages. */
const site = createServer((request, response) => {
  if ([DRIVER, SECOND].includes(request.url ?? "")) response.end(readFileSync(goDriver()));
  else response.end("<!doctype html><title>Log in</title>");
});
let address = "";

beforeAll(async () => {
  await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
  const { port } = site.address() as AddressInfo;
  address = `http://127.0.0.1:${port}`;
  await world.start({ DROVER_DRIVER_MAY_REACH: `127.0.0.1:${port}` });
});
afterAll(async () => {
  await world.end();
  site.close();
});

test("a driver is added, switched off and on, and removed", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await page.getByRole("link", { name: "Cluster drivers" }).click();
  // Those that are part of Drover cannot be removed.
  await page.getByRole("row", { name: /^Active googleKubernetesEngine part of Drover/ }).waitFor();
  expect(await page.getByRole("button", { name: /^Remove/ }).count()).toBe(0);

  const dialog = page.getByRole("dialog");
  await page.getByRole("button", { name: "Add driver…" }).click();
  await dialog.getByLabel("Address of the program").fill(`${address}/kontainer-engine-driver-page`);
  await dialog.getByLabel("Checksum").fill("abc");
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  await dialog.getByText("It was not added.").waitFor();
  await dialog.getByText(/MD5 and SHA-1 can be forged/).waitFor();
  visitor.complaints.length = 0;
  await dialog.getByLabel("Checksum").fill("");
  await dialog.getByLabel("Name", { exact: true }).fill("page");
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  const broken = page.getByRole("row", { name: /^Installing page/ });
  await broken.getByText(/gives a web page, not a program/).waitFor();

  await page.getByRole("button", { name: "Add driver…" }).click();
  await dialog.getByLabel("Address of the program").fill(`${address}${DRIVER}`);
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("row", { name: /^Active go / }).waitFor();
  await page.getByText(/no checksum was given; what came first is used: SHA-256/).waitFor();
  await page.screenshot({ path: "../target/ui/screens/drivers.png" });

  await page.getByRole("button", { name: "Change go…", exact: true }).click();
  await dialog.getByLabel("Address of the program").fill(`${address}${SECOND}`);
  await dialog.getByLabel("Checksum").fill("0".repeat(64));
  await page.screenshot({ path: "../target/ui/screens/driver-change.png" });
  await dialog.getByRole("button", { name: "Change", exact: true }).click();
  await page.getByRole("row", { name: /^Downloading go .*the checksum/ }).waitFor();
  await page.getByRole("button", { name: "Change go…", exact: true }).click();
  await dialog.getByLabel("Checksum").fill("");
  await dialog.getByRole("button", { name: "Change", exact: true }).click();
  await page.getByRole("row", { name: new RegExp(`^Active go ${address}${SECOND}`) }).waitFor();

  await page.getByRole("button", { name: "Deactivate go", exact: true }).click();
  await page.getByRole("row", { name: /^Inactive go / }).waitFor();
  await page.getByRole("button", { name: "Activate go", exact: true }).click();
  await page.getByRole("row", { name: /^Active go / }).waitFor();

  await page.getByRole("button", { name: "Remove go…", exact: true }).click();
  await dialog.getByRole("button", { name: "Remove", exact: true }).click();
  await page.getByRole("row", { name: / go http/ }).waitFor({ state: "detached" });
  visitor.expectQuiet();
  await visitor.leave();
});

test("who may not manage drivers sees them, and why nothing can be changed", async () => {
  const visitor = await world.visitor();
  await visitor.signIn();
  await visitor.makeUser({ username: "mia", password: PASSWORD });
  await visitor.leave();
  const mia = await world.visitor();
  await mia.signIn("", "mia");
  await mia.page.goto("/drivers");
  await mia.page.getByRole("heading", { name: "Cluster drivers", level: 1 }).waitFor();
  const add = mia.page.getByRole("button", { name: "Add driver…" });
  await add.waitFor();
  expect(await add.getAttribute("aria-disabled")).toBe("true");
  mia.expectQuiet();
  await mia.leave();
});
