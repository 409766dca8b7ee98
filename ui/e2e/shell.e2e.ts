/** The kubectl shell: in a real cluster, as two people, and what is left after it. */

import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { shell, xtask } from "./programs.ts";
import { RealCluster } from "./real.ts";
import { PASSWORD, type Visitor, World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "1"]);
const cluster = new RealCluster("shells", world.folder);
/** Of what the cluster does by itself. */
const PATIENCE = { timeout: 60_000 };
const OURS = "-n cattle-system -l drover.io/owned=kubectl-shell";

beforeAll(async () => {
  const image = join(world.folder, "drover-shell.tar");
  await shell(`${xtask()} image --shell --output ${image}`, {});
  // Pods reach the server as they would in a data centre: by its address.
  world.server.host = await cluster.start([image]);
  await world.start();
  const visitor = await world.visitor();
  await visitor.signIn();
  await cluster.import(visitor);
  const simulated = await visitor.importCommand("simulated");
  await world.run(simulated);
  await visitor.page.goto("/clusters");
  await visitor.row("simulated").getByText("Active").waitFor();
  const role = { cluster: "shells", role: "nodes-view" };
  await visitor.makeUser({ username: "ola", password: PASSWORD, mustChangePassword: false }, role);
  await visitor.leave();
}, 240_000);
afterAll(async () => {
  await Promise.all([world.end(), cluster.end()]);
});

/** What the shown shell has on its screen. */
const screen = ({ page }: Visitor) => page.locator("[data-shown=true] .xterm-rows");

async function run(visitor: Visitor, line: string): Promise<void> {
  await visitor.page.keyboard.type(`${line}\n`);
}

async function opened(visitor: Visitor): Promise<void> {
  await screen(visitor).getByText("kubectl (k) and helm act as you").waitFor(PATIENCE);
}

test("the administrator works in a shell that survives navigation, and nothing is left of it", async () => {
  const visitor = await world.visitor();
  await visitor.signIn();
  const { page } = visitor;
  await page.goto("/c/shells");
  await page.getByRole("button", { name: "Shell", exact: true }).click();
  await opened(visitor);
  await run(visitor, "kubectl auth whoami -o jsonpath='{.status.userInfo.username}{\"\\n\"}'");
  await screen(visitor)
    .getByText(/^(u-|user-)\w+/)
    .waitFor(PATIENCE);
  await run(visitor, "k create namespace made-in-a-shell");
  await screen(visitor).getByText("namespace/made-in-a-shell created").waitFor(PATIENCE);
  await cluster.run("kubectl get namespace made-in-a-shell");
  await run(visitor, "helm version --short");
  await screen(visitor)
    .getByText(/^v[34]\./)
    .waitFor(PATIENCE);
  // The pod has no rights of its own, and cannot change its system.
  await run(visitor, "ls /var/run/secrets; touch /bin/x; id -u");
  await screen(visitor).getByText("Read-only file system").waitFor();
  await screen(visitor).getByText("65532").waitFor();
  // Another page, then back by the key.
  await page.getByRole("link", { name: "Nodes" }).click();
  await page.getByRole("heading", { name: "Nodes of shells" }).waitFor();
  await screen(visitor).getByText("namespace/made-in-a-shell created").waitFor();
  await visitor.expectAccessible("a page with a shell");
  await page.keyboard.press("Control+`");
  await expect.poll(() => page.getByRole("region", { name: "Shells" }).isVisible()).toBe(false);
  await page.keyboard.press("Control+`");
  await run(visitor, "echo still $((40 + 2))");
  await screen(visitor).getByText("still 42").waitFor();
  const pods = await cluster.run(`kubectl get pods,secrets ${OURS} -o name`);
  expect(pods.trim().split("\n")).toHaveLength(2);
  await page.getByRole("button", { name: "End the shell in shells" }).click();
  await expect
    .poll(() => cluster.run(`kubectl get pods,secrets ${OURS} -o name`), PATIENCE)
    .toMatch(/^No resources found|^$/);
  const { data } = await visitor.api<{ data: { id: string }[] }>("GET", "/v3/tokens");
  expect(data.filter(({ id }) => id.startsWith("kubectl-shell"))).toEqual([]);
  expect(visitor.complaints).toEqual([]);
  await visitor.leave();
});

test("a reader has a shell that may read, and it ends with the login", async () => {
  const visitor = await world.visitor();
  await visitor.signIn("", "ola");
  const { page } = visitor;
  await page.goto("/c/shells");
  await page.getByText("kubectl shell on shells").click();
  await opened(visitor);
  await run(visitor, "kubectl get nodes -o name; kubectl create namespace refused");
  await screen(visitor)
    .getByText(/^node\//)
    .waitFor(PATIENCE);
  await screen(visitor)
    .getByText(/cannot create resource "namespaces"/)
    .waitFor(PATIENCE);
  // The token is good for this cluster only.
  await run(visitor, "S=$(grep -o 'https://[^/]*' ~/.kube/config)");
  await run(visitor, "kubectl --server $S/k8s/clusters/local get namespaces");
  await screen(visitor).getByText("You must be logged in to the server").first().waitFor(PATIENCE);
  await visitor.api("POST", "/v3/tokens?action=logout", {});
  await expect
    .poll(() => cluster.run(`kubectl get pods,secrets ${OURS} -o name`), PATIENCE)
    .toMatch(/^No resources found|^$/);
  await visitor.leave();
});

test("leftovers of a server that was killed are removed, and the window opens the shell again", async () => {
  const visitor = await world.visitor();
  await visitor.signIn();
  const { page } = visitor;
  await page.goto("/c/shells");
  await page.getByText("kubectl shell on shells").waitFor();
  await page.keyboard.press("Control+`");
  await opened(visitor);
  const before = (await cluster.run(`kubectl get pods ${OURS} -o name`)).trim();
  await world.server.kill();
  await page.getByRole("button", { name: "Open again" }).waitFor();
  await world.startServer();
  await expect
    .poll(() => cluster.run(`kubectl get pods,secrets ${OURS} -o name`), PATIENCE)
    .not.toContain(before);
  await visitor.freshness("Live");
  await page.getByRole("button", { name: "Open again" }).click();
  await opened(visitor);
  await visitor.leave();
});

test("a simulated cluster says that it is simulated, and the management API has no shell", async () => {
  const visitor = await world.visitor();
  await visitor.signIn();
  const { page } = visitor;
  await page.goto("/c/simulated");
  await page.getByRole("button", { name: "Shell", exact: true }).click();
  await screen(visitor).getByText("This container is simulated").waitFor(PATIENCE);
  // It stays.
  const ending = `kubectl wait pod ${OURS} --for=jsonpath='{.status.phase}'=Succeeded --timeout=4s`;
  await expect(world.run(ending)).rejects.toThrow("timed out");
  await run(visitor, "whoami");
  await screen(visitor)
    .getByText(/^root$|^shell$|65532/)
    .waitFor();
  await page.goto("/c/local");
  const button = page.getByRole("button", { name: "Shell", exact: true });
  await button.hover();
  await page.getByText("The management API has no pods").waitFor();
  await visitor.leave();
});

test("an administrator switches shells off", async () => {
  const visitor = await world.visitor();
  await visitor.signIn();
  const { page } = visitor;
  await visitor.api("PUT", "/v3/settings/kubectl-shell", { value: "false" });
  await page.goto("/c/shells");
  await page.getByRole("button", { name: "Shell", exact: true }).hover();
  await page.getByText("switched off by the setting kubectl-shell").waitFor();
  await visitor.api("PUT", "/v3/settings/kubectl-shell", { value: "true" });
  await visitor.leave();
});
