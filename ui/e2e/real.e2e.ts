/** Pods that really run: their logs as they are written, a shell, a way back to an earlier image. */

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { RealCluster } from "./real.ts";
import { type Visitor, World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "1"]);
const cluster = new RealCluster("browser", world.folder);
/** Of what the cluster does by itself. */
const PATIENCE = { timeout: 30_000 };
/** From a line of a log to the screen, in milliseconds. */
const LINE_TIME_MAX_MS = 500;

/** Writes the kernel's clock, in seconds, ten times a second, and what a page must not obey. */
const PROGRAM = [
  "trap exit TERM",
  "printf '<img src=x onerror=alert(1)> \\033[31mred\\033[0m\\033]0;title\\007\\033[2J end\\n'",
  "while read up idle < /proc/uptime; do echo now $up; sleep 0.1; done",
].join("\n");

const deployment = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { namespace: "default", name: "clock" },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: "clock" } },
    template: {
      metadata: { labels: { app: "clock" } },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [
          {
            name: "main",
            image: "drover.test/toolbox:1",
            imagePullPolicy: "Never",
            command: ["sh", "-c", PROGRAM],
          },
        ],
      },
    },
  },
};

beforeAll(async () => {
  await Promise.all([world.start(), cluster.start([], true)]);
  const file = join(world.folder, "clock.json");
  writeFileSync(file, JSON.stringify(deployment));
  await cluster.run(`kubectl create -f ${file}`);
  const visitor = await world.visitor();
  await visitor.signIn();
  await cluster.import(visitor);
  await visitor.leave();
  await cluster.run("kubectl rollout status deployment/clock --timeout=60s");
}, 180_000);
afterAll(async () => {
  await Promise.all([world.end(), cluster.end()]);
});

async function pod(): Promise<Visitor> {
  const visitor = await world.visitor();
  await visitor.signIn();
  const { page } = visitor;
  await page.goto("/c/browser/objects/apps.deployments/default/clock");
  await page.getByRole("table", { name: "Pods" }).getByRole("link").first().click();
  await page.getByRole("table", { name: "Containers" }).getByText("Running").waitFor();
  return visitor;
}

test("what containers, nodes and the cluster use is shown where it is measured", async () => {
  const visitor = await pod();
  const { page } = visitor;
  const containers = page.getByRole("table", { name: "Containers" });
  await page.reload();
  // A new pod is measured twice before there is a figure.
  await containers.getByRole("cell", { name: /^\d+m$/ }).waitFor({ timeout: 60_000 });
  await containers.getByRole("cell", { name: /[KM]iB$/ }).waitFor();
  await visitor.expectAccessible("measured containers");
  await page.goto("/c/browser/nodes");
  const node = page.getByRole("row").filter({ hasText: "node-1" });
  await expect.poll(() => node.locator("td[title$='in use']").count(), { timeout: 60_000 }).toBe(2);
  await page.goto("/c/browser");
  await page.getByText(/GiB left for more pods, .* in use/).waitFor({ timeout: 90_000 });
  await page.locator("figcaption", { hasText: "in use" }).first().waitFor({ timeout: 60_000 });
  await visitor.expectAccessible("the use of a cluster");
  await visitor.leave();
});

test("a line of a log is on the screen within half a second, and stays a line", async () => {
  const visitor = await pod();
  const { page } = visitor;
  await page.getByRole("link", { name: "Logs" }).click();
  const log = page.getByRole("log");
  await log
    .getByText(/^now [\d.]+$/)
    .first()
    .waitFor();
  await page.getByText("Following").waitFor();
  // How old the newest line on the screen is, looked at often: an old one is replaced in time.
  const boot = Date.now() - 1000 * Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]);
  const ages = await page.evaluate(async (boot) => {
    const seen: number[] = [];
    for (let look = 0; look < 100; look += 1) {
      const lines = document.querySelectorAll("[role=log] > div");
      const newest = /now ([\d.]+)/.exec(lines[lines.length - 1]?.textContent ?? "");
      if (newest) seen.push(Date.now() - boot - 1000 * Number(newest[1]));
      await new Promise((next) => requestAnimationFrame(next));
    }
    return seen.sort((one, other) => one - other);
  }, boot);
  expect(ages.length).toBeGreaterThan(50);
  expect(ages[Math.floor(ages.length / 2)]).toBeLessThan(LINE_TIME_MAX_MS);

  await page.getByLabel("Search the log").fill("onerror");
  const line = log.locator("[data-index]").first();
  await line.waitFor();
  expect(await line.innerText()).toBe("<img src=x onerror=alert(1)> red end");
  expect(await line.locator("[data-colour='1']").innerText()).toBe("red");
  expect(await log.locator("img").count()).toBe(0);
  visitor.expectQuiet();
  await visitor.leave();
});

test("a container that starts again is followed again", async () => {
  const visitor = await pod();
  const { page } = visitor;
  await page.getByRole("link", { name: "Logs" }).click();
  const log = page.getByRole("log");
  await log.getByText(/^now/).first().waitFor();
  const name = await page.getByRole("heading", { level: 1 }).innerText();
  await cluster.run(`kubectl exec ${name} -- sh -c 'kill 1'`).catch(() => undefined);
  await page.getByText("Ended").or(page.getByText("Trying again")).first().waitFor();
  await page.getByText("Following").waitFor();
  const newest = () => log.locator("[data-index]").last().innerText();
  const before = await newest();
  await expect.poll(newest, PATIENCE).not.toBe(before);
  await page.getByLabel("Before the last restart").check();
  await log.getByText(/^now/).first().waitFor();
  await visitor.leave();
});

test("a shell runs what is typed, in colours that the page's policy allows", async () => {
  const visitor = await pod();
  const { page } = visitor;
  await page.getByRole("link", { name: "Shell" }).click();
  const shell = page.getByRole("region", { name: "Shell" });
  // There is no bash in it.
  await shell.getByText("Connected").waitFor();
  const screen = () => shell.locator(".xterm-rows").innerText();
  await expect.poll(screen, PATIENCE).toContain("/ #");
  await page.keyboard.type("echo $((6*7))-$(cat /proc/1/comm)\n");
  await expect.poll(screen, PATIENCE).toContain("42-sh");
  await page.keyboard.type("printf '\\033[38;2;10;20;200mtrue\\033[0m\\n'\n");
  const coloured = shell.locator(".xterm-rows span", { hasText: /^true$/ });
  await coloured.waitFor();
  expect(await coloured.evaluate((one) => getComputedStyle(one).color)).toBe("rgb(10, 20, 200)");
  await page.keyboard.type("stty size\n");
  await expect.poll(screen, PATIENCE).toMatch(/^\d{2} \d{2,3}$/m);
  await page.keyboard.type("exit 3\n");
  await shell.getByText(/exit code 3/).waitFor();
  visitor.expectQuiet();
  await visitor.leave();
});

test("a file is copied from a container and to it, byte by byte", async () => {
  const visitor = await pod();
  const { page } = visitor;
  const name = await page.getByRole("heading", { level: 1 }).innerText();
  const make = `head -c 3000000 /dev/urandom > "/tmp/-odd name"; sha256sum < "/tmp/-odd name"`;
  const sum = await cluster.run(`kubectl exec ${name} -- sh -c '${make}'`);
  const dialog = page.getByRole("dialog");
  await page.getByRole("button", { name: "Copy files…" }).click();
  await dialog.getByLabel("Path in the container").fill("/tmp/-odd name");
  const downloading = page.waitForEvent("download");
  await dialog.getByRole("button", { name: "Download" }).click();
  const download = await downloading;
  expect(download.suggestedFilename()).toBe("-odd name");
  const copied = readFileSync(await download.path());
  expect(copied.length).toBe(3_000_000);
  expect(sum).toContain(createHash("sha256").update(copied).digest("hex"));
  await dialog.getByLabel("Path in the container").fill("/no/such/file");
  await dialog.getByRole("button", { name: "Download" }).click();
  await dialog.getByText(/No such file/).waitFor();

  await dialog.getByLabel("Path in the container").fill("/tmp/");
  const choosing = page.waitForEvent("filechooser");
  await dialog.getByRole("button", { name: "Upload…" }).click();
  const chooser = await choosing;
  await chooser.setFiles({ name: "-odd again", mimeType: "text/plain", buffer: copied });
  await page.getByText(/^Uploaded -odd again/).waitFor(PATIENCE);
  const written = await cluster.run(
    `kubectl exec ${name} -- sh -c 'sha256sum < "/tmp/-odd again"; ls /tmp'`,
  );
  expect(written).toContain(sum.trim().split(" ")[0]);
  expect(written).not.toContain(".part");
  await dialog.getByLabel("Path in the container").fill("/proc/nothing/here");
  const second = page.waitForEvent("filechooser");
  await dialog.getByRole("button", { name: "Upload…" }).click();
  await (await second).setFiles({ name: "x", mimeType: "text/plain", buffer: Buffer.from("x") });
  await dialog.getByText(/nonexistent directory|No such file/).waitFor();
  await visitor.expectAccessible("copying files");
  visitor.expectQuiet();
  await visitor.leave();
});

test("a deployment whose new image cannot be pulled says why, and is rolled back", async () => {
  await cluster.run("kubectl set image deployment/clock main=drover.test/nosuch:1");
  const visitor = await world.visitor();
  await visitor.signIn();
  const { page } = visitor;
  await page.goto("/c/browser/objects/apps.deployments/default/clock");
  const bad = page.getByRole("row", { name: /ErrImageNeverPull/ });
  await bad.waitFor();
  await bad.getByRole("link").click();
  await page.getByRole("cell", { name: /nosuch:1.* is not present/ }).waitFor();
  await page.getByRole("link", { name: "Events", exact: true }).last().click();
  await page
    .getByRole("row", { name: /ErrImageNeverPull|Failed/ })
    .first()
    .waitFor();
  await page.goto("/c/browser");
  const warnings = page.getByRole("region", { name: "Warnings" });
  await warnings
    .getByText(/^Pod clock-/)
    .first()
    .waitFor();
  await page.goto("/c/browser/objects/apps.deployments/default/clock?view=revisions");
  await page.getByRole("button", { name: "Roll back to 1…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("image: drover.test/toolbox:1").waitFor();
  await dialog.getByRole("button", { name: "Roll back", exact: true }).click();
  await page.getByText("Rolling clock back to revision 1").waitFor();
  await cluster.run("kubectl rollout status deployment/clock --timeout=60s");
  await page.getByRole("link", { name: "Pods", exact: true }).last().click();
  await bad.waitFor({ state: "detached" });
  await page.getByRole("row", { name: /Running/ }).waitFor();
  visitor.expectQuiet();
  await visitor.leave();
});
