/**
 * What a newcomer does, in clicks and seconds: sign in, import a cluster, hand a project to a second
 * user, who deploys in it. Names are typed, and the seconds are those of the program, not of a
 * person who reads.
 */

import { appendFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { countClicks } from "./clicks.ts";
import { World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "2"]);
const OWN_PASSWORD = "a password of Ada's own";
const CLICKS_MAX = 40;

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop-web
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: registry.example/web:1}]
`;

beforeAll(() => world.start());
afterAll(() => world.end());

test("from the first login to a deployment of a second user", async () => {
  const start = performance.now();
  const owner = await world.visitor();
  const owned = await countClicks(owner);
  const { page } = owner;
  const dialog = page.getByRole("dialog");
  await owner.signIn();
  await page
    .getByRole("button", { name: /^Import/ })
    .first()
    .click();
  await dialog.getByLabel("Name", { exact: true }).fill("orchard");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Copy the import command" }).click();
  await world.run(await page.evaluate(() => navigator.clipboard.readText()));
  await page.keyboard.press("Escape");
  await owner.row("orchard").getByText("Active").waitFor();

  await page.getByRole("link", { name: "Users" }).click();
  await page.getByRole("button", { name: "Create user" }).click();
  await dialog.getByLabel("User name").fill("ada");
  await page.keyboard.press("Enter");
  await dialog.getByText("ada can log in").waitFor();
  const password = (await dialog.locator("code").innerText()).trim();
  await dialog.getByRole("button", { name: "Done" }).click();

  await page
    .getByRole("navigation", { name: "Fleet" })
    .getByRole("link", { name: /^Clusters/ })
    .click();
  await page.getByRole("link", { name: "orchard" }).first().click();
  await page.getByRole("link", { name: "Projects" }).click();
  await page.getByRole("button", { name: "Create project" }).click();
  await dialog.getByLabel("Name").fill("shop");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Create namespace" }).click();
  await dialog.getByLabel("Name").fill("shop-web");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "shop-web" }).waitFor();
  await page.getByRole("button", { name: "Add member" }).click();
  await dialog.getByLabel("User or group").fill("ada");
  await dialog.getByRole("radiogroup", { name: "Found" }).getByRole("radio").click();
  await dialog.getByRole("button", { name: "Give role" }).click();
  await page.getByText("ada is a member of shop").waitFor();
  const handed = performance.now();

  const ada = await world.visitor();
  const adas = await countClicks(ada);
  await ada.signIn("", "ada", password);
  await ada.page.getByLabel("Current password").fill(password);
  await ada.page.getByLabel("New password").fill(OWN_PASSWORD);
  await ada.page.keyboard.press("Enter");
  await ada.page.getByRole("button", { name: "Go on" }).click();
  await ada.page.getByRole("link", { name: "orchard" }).first().click();
  await ada.page.getByRole("link", { name: "Deployments" }).click();
  await ada.page.getByRole("button", { name: "Create" }).click();
  await ada.page.getByRole("textbox", { name: /^YAML/ }).fill(deployment);
  await ada.page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
  await ada.page
    .getByRole("row", { name: /Running/ })
    .nth(1)
    .waitFor();
  const end = performance.now();

  const seconds = (from: number, to: number) => ((to - from) / 1000).toFixed(1);
  const clicks = owned() + adas();
  expect(clicks).toBeGreaterThan(15);
  expect(clicks).toBeLessThan(CLICKS_MAX);
  // `cargo xtask bench` names the history and the run.
  const { DROVER_BENCH_HISTORY: history, DROVER_BENCH_RUN: run } = process.env;
  if (history) {
    const figures = `newcomer-clicks=${clicks} newcomer=${seconds(start, end)}s`;
    appendFileSync(history, `${run}\tinterface\t${figures}\n`);
  }
  console.log(
    `a newcomer: ${owned()} clicks and ${seconds(start, handed)} s until the project is handed over, ` +
      `${adas()} clicks and ${seconds(handed, end)} s until the second user's deployment runs`,
  );
  await ada.leave();
  await owner.leave();
});
