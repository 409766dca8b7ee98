/** A cluster is created with a driver: by a form of the driver's options, with its log beside it. */

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Drover, faultyDriver } from "./programs.ts";
import { World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "1"]);
/** The cloud: its cluster exists already, and the driver returns it. */
const cloud = new Drover("sim", join(world.folder, "cloud"), ["--nodes", "1"]);
const site = createServer((_, response) => response.end(readFileSync(faultyDriver())));
let driver = "";

beforeAll(async () => {
  await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
  const { port } = site.address() as AddressInfo;
  driver = `http://127.0.0.1:${port}/kontainer-engine-driver-faulty`;
  await cloud.start();
  const reach = `127.0.0.1:${port},${new URL(cloud.url()).host}`;
  await world.start({ DROVER_DRIVER_MAY_REACH: reach });
});
afterAll(async () => {
  await world.end();
  await cloud.kill();
  site.close();
});

/** The value of a field of the cloud's kubeconfig. */
function ofCloud(field: string): string {
  const file = readFileSync(join(cloud.data, "admin.kubeconfig"), "utf8");
  return new RegExp(`${field}: (?:>-\\s+)?"?([^"\\s]+)`).exec(file)?.[1] ?? "";
}

test("a cluster is created from a form, fails, is mended, and is used", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await page.getByRole("button", { name: "Import cluster" }).first().waitFor();
  const named = { url: driver, active: true, name: "Our cloud" };
  await visitor.api("POST", "/v3/kontainerdrivers", named);
  await page.getByRole("link", { name: "Cluster drivers" }).click();
  await page.getByRole("row", { name: /^Active Our cloud/ }).waitFor();

  await page.getByRole("link", { name: /^Clusters/ }).click();
  await page.getByRole("button", { name: "Create cluster…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Driver", { exact: true }).selectOption("googleKubernetesEngine");
  await dialog.getByLabel("Credential").waitFor();
  await page.screenshot({ path: "../target/ui/screens/create-cluster-gke.png" });
  await dialog.getByLabel("Driver", { exact: true }).selectOption("Our cloud");
  await dialog.getByLabel("Name", { exact: true }).fill("made");
  await dialog.getByLabel("Cluster endpoint").fill(ofCloud("server"));
  await dialog.getByLabel("Cluster CA").fill(ofCloud("certificate-authority-data"));
  await dialog.getByLabel("Access token").fill(ofCloud("token"));
  await dialog.getByText("What goes wrong, as WHAT:METHOD").waitFor();
  await dialog.getByLabel("Fault").fill("half:Create");
  await page.screenshot({ path: "../target/ui/screens/create-cluster.png" });
  await dialog.getByRole("button", { name: "Create", exact: true }).click();

  await page.getByRole("heading", { name: "made", level: 1 }).waitFor();
  const log = page.getByRole("log", { name: "Provisioning log" });
  await log.getByText(/failed: the quota of the cloud is exceeded/).waitFor();
  await page
    .getByText(/The quota of the cloud is exceeded; tried again at/)
    .first()
    .waitFor();
  await page.screenshot({ path: "../target/ui/screens/provisioning-failed.png" });

  // Cancelled: what is to be done is done when it goes on.
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await page
    .getByText(/The driver is paused by the annotation/)
    .first()
    .waitFor();
  const { data } = await visitor.api<{ data: { id: string }[] }>("GET", "/v3/clusters?name=made");
  const path = `/v3/clusters/${data[0]?.id}`;
  const made = await visitor.api<{ faultyEngineConfig: object }>("GET", path);
  const config = { ...made.faultyEngineConfig, fault: "" };
  await visitor.api("PUT", path, { faultyEngineConfig: config });
  await page.getByRole("button", { name: "Resume", exact: true }).click();
  await log.getByText(/the agent is deployed/).waitFor();
  await page.getByText("Active", { exact: true }).first().waitFor();
  await page.screenshot({ path: "../target/ui/screens/provisioning.png" });
  const text = await log.innerText();
  expect(text).not.toContain(ofCloud("token"));
  visitor.expectQuiet();

  await visitor.leave();
});
