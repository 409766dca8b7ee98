/**
 * Workloads and pods: pods of a workload, scale, images, rollbacks, restarts; containers, logs and
 * shells of a pod; and what each role may do of that.
 */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "./programs.ts";
import { type Visitor, World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "2"]);
/** Of what the cluster does by itself. */
const PATIENCE = { timeout: 30_000 };
const READER_PASSWORD = "password-of-rita";
const DEPLOYMENT = "/c/orchard/objects/apps.deployments/default/web";

const web = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { namespace: "default", name: "web" },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: "web" } },
    template: {
      metadata: { labels: { app: "web" } },
      spec: {
        containers: [
          { name: "web", image: "registry.example/web:1", ports: [{ containerPort: 80 }] },
          { name: "side", image: "registry.example/side:1" },
        ],
      },
    },
  },
};

const nightly = {
  apiVersion: "batch/v1",
  kind: "CronJob",
  metadata: { namespace: "default", name: "nightly" },
  spec: {
    schedule: "0 3 * * *",
    jobTemplate: {
      spec: {
        template: {
          spec: { restartPolicy: "Never", containers: [{ name: "job", image: "job:1" }] },
        },
      },
    },
  },
};

beforeAll(async () => {
  await world.start();
  const file = join(world.folder, "objects.json");
  const list = { apiVersion: "v1", kind: "List", items: [web, nightly] };
  writeFileSync(file, JSON.stringify(list));
  await world.run(`kubectl create -f ${file}`);
  await world.run("kubectl rollout status deployment/web --timeout=30s");
  const visitor = await world.visitor();
  await visitor.signIn();
  await world.run(await visitor.importCommand("orchard"));
  await visitor.row("orchard").getByText("Active").waitFor();
  await makeReader(visitor);
  await visitor.leave();
});
afterAll(() => world.end());

/** A user who may read the default project of the cluster. */
async function makeReader(visitor: Visitor): Promise<void> {
  await visitor.makeUser({ username: "rita", password: READER_PASSWORD });
  interface Named {
    data: { id: string; name: string; username?: string }[];
  }
  const { data: users } = await visitor.api<Named>("GET", "/v3/users?username=rita");
  const project = await eventually("the default project", async () => {
    const { data } = await visitor.api<Named>("GET", "/v3/projects?name=Default");
    const found = data.find(({ id }) => !id.startsWith("local:"));
    if (!found) throw new Error(JSON.stringify(data));
    return found;
  });
  await visitor.api("POST", "/v3/projectroletemplatebindings", {
    projectId: project.id,
    roleTemplateId: "read-only",
    userId: users[0]?.id,
  });
}

async function opened(path: string): Promise<Visitor> {
  const visitor = await world.visitor();
  await visitor.signIn();
  await visitor.page.goto(path);
  return visitor;
}

function stored(path: string): Promise<string> {
  return world.run(`kubectl get deployment web -o jsonpath='{${path}}'`);
}

test("a deployment is scaled, gets another image, is rolled back and restarted", async () => {
  const visitor = await opened(DEPLOYMENT);
  const { page } = visitor;
  const rows = page.getByRole("table", { name: "Pods" }).getByRole("row");
  const pods = () => rows.count().then((number) => number - 1);
  await expect.poll(pods, PATIENCE).toBe(2);

  await page.getByRole("button", { name: "Scale…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Pods").fill("3");
  await page.keyboard.press("Enter");
  await page.getByText("web gets 3 pods").waitFor();
  await expect.poll(pods, PATIENCE).toBe(3);

  // What a change does is shown before it is made.
  await page.getByRole("button", { name: "More actions for web" }).click();
  await page.getByRole("menuitem", { name: "Change images…" }).click();
  await dialog.getByLabel("web", { exact: true }).fill("registry.example/web:2");
  await dialog.getByRole("button", { name: "Review changes" }).click();
  const diff = dialog.getByRole("region", { name: "What would change" });
  await diff.getByText("image: registry.example/web:1").waitFor();
  await diff.getByText("image: registry.example/web:2").waitFor();
  const image = ".spec.template.spec.containers[0].image";
  expect(await stored(image)).toBe("registry.example/web:1");
  await dialog.getByRole("button", { name: "Change images" }).click();
  await page.getByText("web gets other images").waitFor();
  expect(await stored(image)).toBe("registry.example/web:2");

  await page.getByRole("link", { name: "Revisions" }).click();
  const revisions = page.getByRole("table", { name: "Revisions" });
  await revisions.getByRole("row", { name: /web:2.*Current/ }).waitFor();
  await page.getByRole("button", { name: "Roll back to 1…" }).click();
  await diff.getByText("image: registry.example/web:1").waitFor();
  await dialog.getByRole("button", { name: "Roll back", exact: true }).click();
  await page.getByText("Rolling web back to revision 1").waitFor();
  expect(await stored(image)).toBe("registry.example/web:1");
  await revisions.getByRole("row", { name: /web:1.*Current/ }).waitFor();

  await page.getByRole("button", { name: "Restart" }).click();
  await page.getByText("Restarting web").waitFor();
  const restarted = ".spec.template.metadata.annotations.kubectl\\.kubernetes\\.io/restartedAt";
  expect(await stored(restarted)).toMatch(/^20\d\d-/);

  // A paused deployment rolls nothing out, and says so.
  await page.getByRole("button", { name: "More actions for web" }).click();
  await page.getByRole("menuitem", { name: "Pause rollouts" }).click();
  await page.getByText("Paused the rollouts of web").waitFor();
  const back = page.getByRole("button", { name: /^Roll back to/ }).first();
  await expect.poll(() => back.getAttribute("aria-disabled"), PATIENCE).toBe("true");
  await page.getByRole("button", { name: "More actions for web" }).click();
  await page.getByRole("menuitem", { name: "Resume rollouts" }).click();
  await page.getByText("Resumed the rollouts of web").waitFor();

  // Before something is deleted it is said what goes with it.
  await page.getByRole("button", { name: "Delete…" }).click();
  await dialog.getByText(/^It takes along \d+ ReplicaSet/).waitFor();
  await dialog.getByRole("button", { name: "Keep" }).click();
  visitor.expectQuiet();
  await visitor.leave();
});

test("a wrong image is refused by the cluster before anything changes", async () => {
  const visitor = await opened(DEPLOYMENT);
  const { page } = visitor;
  await page.getByRole("button", { name: "More actions for web" }).click();
  await page.getByRole("menuitem", { name: "Change images…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("web", { exact: true }).fill(" ");
  await dialog.getByRole("button", { name: "Review changes" }).click();
  await dialog.getByText("Nothing was changed.").waitFor();
  await dialog.getByText(/image: Required value/).waitFor();
  await visitor.leave();
});

test("a cron job is suspended and resumed", async () => {
  const visitor = await opened("/c/orchard/objects/batch.cronjobs/default/nightly");
  const { page } = visitor;
  await page.getByText("No jobs").waitFor();
  await page.getByRole("button", { name: "Suspend" }).click();
  await page.getByText("Suspended nightly").waitFor();
  const suspended = () => world.run("kubectl get cronjob nightly -o jsonpath={.spec.suspend}");
  expect(await suspended()).toBe("true");
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByText("Resumed nightly").waitFor();
  expect(await suspended()).toBe("false");
  visitor.expectQuiet();
  await visitor.leave();
});

test("the palette finds objects of the cluster by a part of their names", async () => {
  const visitor = await opened("/c/orchard");
  const { page } = visitor;
  await page.getByRole("heading", { name: "orchard", level: 1 }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByPlaceholder("Cluster, page or action").fill("nightl");
  // Only usual kinds are looked through.
  await page.getByText("Nothing matches all of these words.").waitFor();
  await page.getByPlaceholder("Cluster, page or action").fill("web deploy");
  await page.getByRole("option", { name: /default\/web Deployments/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "web", level: 1 }).waitFor();
  visitor.expectQuiet();
  await visitor.leave();
});

/** Opens a pod of the deployment from its list; returns the pod's name. */
async function podOf(visitor: Visitor): Promise<string> {
  const { page } = visitor;
  await page.goto(DEPLOYMENT);
  const pod = page.getByRole("table", { name: "Pods" }).getByRole("link").first();
  const name = await pod.innerText();
  await pod.click();
  await page.getByRole("heading", { name, level: 1 }).waitFor();
  return name;
}

test("the log of a pod is followed, searched and downloaded", async () => {
  await world.run("kubectl rollout status deployment/web --timeout=30s");
  const visitor = await opened(DEPLOYMENT);
  const { page } = visitor;
  const name = await podOf(visitor);
  await page
    .getByRole("table", { name: "Containers" })
    .getByRole("row", { name: /side/ })
    .waitFor();
  await page.getByRole("link", { name: "Logs" }).click();
  const log = page.getByRole("log");
  await log.getByText(/listening on 80\/tcp/).waitFor();
  await page.getByText("Following").waitFor();
  // The cluster goes on writing.
  const line = log.getByText(/still running/);
  const before = await line.count();
  await expect.poll(() => line.count(), PATIENCE).toBeGreaterThan(before);

  await page.getByLabel("Search the log").fill("LISTENING");
  await expect.poll(() => log.getByText(/still running/).count()).toBe(0);
  expect(await log.locator("mark").first().innerText()).toBe("listening");
  await page.getByLabel("Search the log").fill("");

  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("link", { name: "Download" }).click(),
  ]);
  expect(download.suggestedFilename()).toBe(`default-${name}-web.log`);
  await page.getByLabel("Container").selectOption("All containers");
  await log.getByText("side ", { exact: true }).first().waitFor();
  expect(new URL(page.url()).searchParams.get("container")).toBe("*");
  visitor.expectQuiet();
  await visitor.leave();
});

test("a shell in a container", async () => {
  await world.run("kubectl rollout status deployment/web --timeout=30s");
  const visitor = await opened(DEPLOYMENT);
  const { page } = visitor;
  const name = await podOf(visitor);
  await page.getByRole("link", { name: "Shell" }).click();
  const shell = page.getByRole("region", { name: "Shell" });
  await shell.getByText("Connected").waitFor();
  const screen = () => shell.locator(".xterm-rows").innerText();
  await expect.poll(screen, PATIENCE).toContain("This container is simulated");
  await page.keyboard.type("hostname\n");
  await expect.poll(screen, PATIENCE).toContain(name);
  // The styles of the terminal hold, though the page allows none inline.
  const [line, screenSize] = await Promise.all([
    shell.locator(".xterm-rows > div").first().boundingBox(),
    shell.locator(".xterm-screen").boundingBox(),
  ]);
  expect(line?.height).toBeGreaterThan(10);
  expect(screenSize?.height).toBeGreaterThan(200);
  // It follows the theme of the page.
  const colour = () =>
    shell.locator(".xterm-rows").evaluate((rows) => getComputedStyle(rows).color);
  const light = await colour();
  await page.emulateMedia({ colorScheme: "dark" });
  await expect.poll(colour, PATIENCE).not.toBe(light);
  await page.emulateMedia({ colorScheme: "light" });
  await expect.poll(colour, PATIENCE).toBe(light);
  await shell.locator("textarea").focus();
  await page.keyboard.type("exit 3\n");
  await shell.getByText("Ended").waitFor();
  await shell.getByRole("button", { name: "Open again" }).click();
  await shell.getByText("Connected").waitFor();
  await page.keyboard.press("Control+Shift+Escape");
  expect(await page.evaluate(() => document.activeElement?.id)).toBe("main");
  visitor.expectQuiet();
  await visitor.expectAccessible("the shell");
  await visitor.leave();
});

test("who may only read is told why, and finds no way around", async () => {
  const visitor = await world.visitor();
  await visitor.signIn("", "rita", READER_PASSWORD);
  const { page } = visitor;
  await eventually("rita sees the deployment", async () => {
    await page.goto(DEPLOYMENT);
    await page.getByRole("button", { name: "Scale…" }).waitFor({ timeout: 3_000 });
  });
  visitor.complaints.length = 0;
  const scale = page.getByRole("button", { name: "Scale…" });
  expect(await scale.getAttribute("aria-disabled")).toBe("true");
  await scale.hover();
  await page.getByText("Your roles in orchard do not let you change this.").first().waitFor();
  await podOf(visitor);
  await page.getByRole("link", { name: "Logs" }).click();
  await page
    .getByRole("log")
    .getByText(/listening on 80\/tcp/)
    .waitFor();
  await page.getByRole("link", { name: "Shell" }).click();
  await page.getByText(/You may not open a shell here/).waitFor();
  visitor.expectQuiet();
  await visitor.leave();
});

test("a map shows what belongs together, from the ingress to the pods", async () => {
  await world.run("kubectl create service clusterip web --tcp=80");
  await world.run("kubectl create ingress front --rule=web.example/=web:80");
  const visitor = await world.visitor();
  await visitor.signIn();
  const { page } = visitor;
  await page.goto(`${DEPLOYMENT}?view=map`);
  const map = page.getByRole("region", { name: "Map" });
  await map.getByRole("list", { name: "Ingresses" }).getByRole("link", { name: /front/ }).waitFor();
  await map.getByRole("list", { name: "Services" }).getByRole("link", { name: /web/ }).waitFor();
  const pods = map.getByRole("list", { name: "Pods" }).getByRole("link");
  await expect.poll(() => pods.count(), PATIENCE).toBeGreaterThan(0);
  await visitor.expectAccessible("a map");
  await map.getByRole("link", { name: /front/ }).click();
  await page.getByRole("heading", { name: "front", level: 1 }).waitFor();
  await map.getByRole("list", { name: "Workloads" }).getByRole("link", { name: /web/ }).waitFor();
  visitor.expectQuiet();
  await visitor.leave();
});
