/**
 * The twelve things that a newcomer does in the first hour, with a real cluster: each with its
 * clicks and the seconds of the programs. The table is in `target/ui/first-hour.md`.
 */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { countClicks } from "./clicks.ts";
import { SCREENS, shell, xtask } from "./programs.ts";
import { RealCluster } from "./real.ts";
import { PASSWORD, type Visitor, World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "1"]);
const cluster = new RealCluster("hour", world.folder);
const OWN_PASSWORD = "a password of Sam's own";
/** Most clicks of one thing. */
const CLICKS_MAX = 12;
/** Of what the cluster does by itself. */
const PATIENCE = { timeout: 60_000 };

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {namespace: default, name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: drover.test/toolbox:1
        imagePullPolicy: Never
        command: [sh, -c, "trap exit TERM; while true; do echo serving; sleep 0.2; done"]
`;

beforeAll(async () => {
  const image = join(world.folder, "drover-shell.tar");
  await shell(`${xtask()} image --shell --output ${image}`, {});
  world.server.host = await cluster.start([image]);
  await world.start();
  const file = join(world.folder, "web.yaml");
  writeFileSync(file, deployment);
  await cluster.run(`kubectl create -f ${file}`);
  const visitor = await world.visitor();
  await visitor.signIn();
  await visitor.makeUser({ username: "sam", password: PASSWORD, mustChangePassword: true });
  await visitor.makeUser({ username: "ada", password: PASSWORD, mustChangePassword: false });
  const { data } = await visitor.api<{ data: { id: string }[] }>("GET", "/v3/users?username=sam");
  await visitor.api("POST", "/v3/globalrolebindings", {
    userId: data[0]?.id,
    globalRoleId: "admin",
  });
  await visitor.leave();
}, 240_000);
afterAll(async () => {
  await Promise.all([world.end(), cluster.end()]);
});

const steps: { what: string; clicks: number; seconds: number }[] = [];

test("the first hour", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  const clicks = await countClicks(visitor);
  const step = async (what: string, run: () => Promise<unknown>) => {
    const [before, start] = [clicks(), performance.now()];
    await run();
    const seconds = Number(((performance.now() - start) / 1000).toFixed(1));
    steps.push({ what, clicks: clicks() - before, seconds });
  };
  const dialog = page.getByRole("dialog");
  const sidebar = page.getByRole("navigation", { name: "Cluster" });

  await step("First login and own password", async () => {
    await visitor.signIn("", "sam", PASSWORD);
    await page.getByLabel("Current password").fill(PASSWORD);
    await page.getByLabel("New password").fill(OWN_PASSWORD);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Go on" }).click();
    await page.getByRole("heading", { name: "Clusters", level: 1 }).waitFor();
  });
  await step("Import a cluster", async () => {
    await page
      .getByRole("button", { name: /^Import/ })
      .first()
      .click();
    await dialog.getByLabel("Name", { exact: true }).fill("hour");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Copy the import command" }).click();
    await cluster.apply(await page.evaluate(() => navigator.clipboard.readText()));
    await page.keyboard.press("Escape");
    await visitor.row("hour").getByText("Active").waitFor();
  });
  await step("Is the cluster well?", async () => {
    await page.getByRole("link", { name: "hour" }).first().click();
    await page.getByText("node-1", { exact: true }).waitFor();
    await page.getByRole("link", { name: "All conditions" }).click();
    await page.getByText("The agent's tunnel to this server is open.").waitFor();
  });
  await step("Find a workload's pods", async () => {
    await sidebar.getByRole("link", { name: /^Deployments/ }).click();
    await page.getByRole("link", { name: "web", exact: true }).click();
    await page.getByRole("row", { name: /Running/ }).waitFor(PATIENCE);
  });
  await step("Read a pod's log", async () => {
    await page.getByRole("table", { name: "Pods" }).getByRole("link").first().click();
    await page.getByRole("link", { name: "Logs" }).click();
    await page.getByRole("log").getByText("serving").first().waitFor();
  });
  await step("A shell in the pod", async () => {
    await page.getByRole("link", { name: "Shell" }).click();
    const terminal = page.getByRole("region", { name: "Shell" });
    await expect.poll(() => terminal.locator(".xterm-rows").innerText(), PATIENCE).toContain("#");
    await page.keyboard.type("echo $((6*7))-here\n");
    await terminal.locator(".xterm-rows").getByText("42-here").waitFor();
  });
  await step("Change an object as YAML", async () => {
    await page.goto("/c/hour/objects/apps.deployments/default/web?view=yaml");
    await page.getByRole("button", { name: "Edit" }).click();
    const editor = page.getByRole("textbox", { name: "YAML of default/web" });
    await editor.fill((await editor.inputValue()).replace("echo serving", "echo improved"));
    await page.getByRole("button", { name: "Review changes" }).click();
    await page
      .getByRole("region", { name: "What would change" })
      .getByText(/echo improved/)
      .waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Edit" }).waitFor();
  });
  await step("Roll it back", async () => {
    await page.getByRole("link", { name: "Revisions" }).click();
    await page.getByRole("button", { name: "Roll back to 1…" }).click();
    await dialog.getByText(/echo serving/).waitFor();
    await dialog.getByRole("button", { name: "Roll back", exact: true }).click();
    await page.getByText("Rolling web back to revision 1").waitFor();
  });
  await step("A project with a namespace", async () => {
    await sidebar.getByRole("link", { name: "Projects" }).click();
    await page.getByRole("button", { name: "Create project" }).click();
    await dialog.getByLabel("Name").fill("shop");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Create namespace" }).click();
    await dialog.getByLabel("Name").fill("shop-web");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "shop-web" }).waitFor();
  });
  await step("A role in it for a colleague", async () => {
    await page.getByRole("button", { name: "Add member" }).click();
    await dialog.getByLabel("User or group").fill("ada");
    await dialog.getByRole("radiogroup", { name: "Found" }).getByRole("radio").click();
    await dialog.getByRole("button", { name: "Give role" }).click();
    await page.getByText("ada is a member of shop").waitFor();
  });
  await step("kubectl in the browser", async () => {
    await page.keyboard.press("Control+`");
    const rows = page.locator("[data-shown=true] .xterm-rows");
    await rows.getByText("kubectl (k) and helm act as you").waitFor(PATIENCE);
    await page.keyboard.type("k get ns shop-web -o name\n");
    await rows.getByText("namespace/shop-web", { exact: true }).waitFor(PATIENCE);
    await picture(visitor);
    await page.keyboard.press("Control+`");
  });
  await step("Find anything by the palette", async () => {
    await page.keyboard.press("Control+k");
    await page.getByPlaceholder("Cluster, page or action").fill("web");
    await page
      .getByRole("option", { name: /default\/web/ })
      .first()
      .waitFor();
    await page.getByRole("option", { name: /default\/web Deployment/ }).waitFor();
    await page.keyboard.type(" deployment");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "web", level: 1 }).waitFor();
  });

  const table = steps.map(({ what, clicks, seconds }) => `| ${what} | ${clicks} | ${seconds} |`);
  const head = "| What | Clicks | Seconds |\n|---|---|---|\n";
  writeFileSync(join(SCREENS, "../first-hour.md"), `${head}${table.join("\n")}\n`);
  expect(steps).toHaveLength(12);
  for (const { what, clicks } of steps) expect(clicks, what).toBeLessThanOrEqual(CLICKS_MAX);
  await visitor.leave();
}, 300_000);

/** What the newcomer has made. */
async function picture({ page }: Visitor): Promise<void> {
  await page.screenshot({ path: join(SCREENS, "first-hour.png") });
}
