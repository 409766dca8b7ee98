/** The objects of a cluster: any kind, filtered, sorted and scrolled, live; one object; its end. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Visitor, World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "2", "--pods", "30"]);
const MAPS = 120;
const VIEWER_PASSWORD = "password-of-vera";

/** Names from `map-000` on. */
function configMaps() {
  const one = (_: unknown, number: number) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { namespace: "default", name: `map-${String(number).padStart(3, "0")}` },
    data: { number: String(number), text: "<img src=x onerror=alert(1)>" },
  });
  return Array.from({ length: MAPS }, one);
}

beforeAll(async () => {
  await world.start();
  const secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace: "default", name: "login" },
    stringData: { password: "a-value-to-hide" },
  };
  const file = join(world.folder, "objects.json");
  const list = { apiVersion: "v1", kind: "List", items: [...configMaps(), secret] };
  writeFileSync(file, JSON.stringify(list));
  await world.run(`kubectl create -f ${file}`);
  const visitor = await world.visitor();
  await visitor.signIn();
  await world.run(await visitor.importCommand("orchard"));
  await visitor.row("orchard").getByText("Active").waitFor();
  await visitor.makeUser(
    { username: "vera", password: VIEWER_PASSWORD },
    { cluster: "orchard", role: "nodes-view" },
  );
  await visitor.leave();
});
afterAll(() => world.end());

async function opened(path: string): Promise<Visitor> {
  const visitor = await world.visitor();
  await visitor.signIn();
  await visitor.page.goto(path);
  return visitor;
}

test("a list is filtered, sorted and scrolled, and follows the cluster", async () => {
  const visitor = await opened("/c/orchard");
  const { page } = visitor;
  const side = page.getByRole("navigation", { name: "Cluster orchard" });
  await side.getByRole("link", { name: "ConfigMaps" }).click();
  await page.getByRole("heading", { name: "ConfigMaps", level: 1 }).waitFor();
  const row = (name: string) => page.getByRole("row").filter({ hasText: name });
  await row("map-000").waitFor();

  await page.getByText(/^1–100 of 1\d\d$/).waitFor();
  const rows = () => page.locator("tbody tr[data-index]").count();
  expect(await rows()).toBeLessThan(60);
  await page.getByRole("main").evaluate((main) => main.scrollTo(0, main.scrollHeight));
  await row("map-119").waitFor();
  expect(await rows()).toBeLessThan(60);
  // The address has the place: a window that shows the second page's rows alone opens there.
  await page.setViewportSize({ width: 1440, height: 420 });
  await page.getByRole("main").evaluate((main) => main.scrollTo(0, main.scrollHeight));
  await expect.poll(() => new URL(page.url()).search).toBe("?page=2");
  await page.reload();
  await row("map-10").first().waitFor();
  expect(await row("map-000").count()).toBe(0);
  // So does the way back from an object.
  await page.getByRole("link", { name: "map-110", exact: true }).click();
  await page.getByText("kind: ConfigMap").waitFor();
  await page.goBack();
  await row("map-110").waitFor();
  expect(await row("map-000").count()).toBe(0);
  await page.getByRole("checkbox", { name: "Select default/map-110" }).check();
  await page.setViewportSize({ width: 1440, height: 900 });
  // What is selected stays so while the list scrolls, and is not taken along to another kind.
  const bar = page.getByRole("region", { name: "Selection" });
  await page.getByRole("main").evaluate((main) => main.scrollTo(0, 0));
  await row("map-000").waitFor();
  await bar.getByText("1 selected").waitFor();
  await side.getByRole("link", { name: "Secrets" }).click();
  await page.getByRole("heading", { name: "Secrets", level: 1 }).waitFor();
  await bar.waitFor({ state: "detached" });
  await side.getByRole("link", { name: "ConfigMaps" }).click();
  await row("map-000").waitFor();

  const filter = page.getByLabel("Filter by name");
  await filter.fill("map-11");
  await filter.press("Enter");
  await page.getByText("10 match").waitFor();
  await page.getByRole("button", { name: "Name", exact: true }).click();
  await page.getByRole("button", { name: "Name", exact: true }).click();
  await expect.poll(() => page.getByRole("row").nth(1).innerText()).toContain("map-119");
  expect(new URL(page.url()).search).toBe("?q=map-11&sort=metadata.name&descending=true");

  // What others change shows by itself.
  await visitor.freshness("Live");
  await world.run("kubectl create configmap map-115-new");
  await row("map-115-new").waitFor();
  await world.run("kubectl delete configmap map-115-new");
  await row("map-115-new").waitFor({ state: "detached" });

  await filter.fill("nothing-like-this");
  await filter.press("Enter");
  await page.getByText("Nothing matches").waitFor();
  await page.getByRole("button", { name: "Show all" }).click();
  await row("map-119").waitFor();
  await page.getByLabel("Namespace", { exact: true }).selectOption("kube-system");
  await row("map-119").waitFor({ state: "detached" });
  visitor.expectQuiet();
  await visitor.leave();
});

test("rows are dense for who wants it, and stay so", async () => {
  const visitor = await opened("/c/orchard/kinds/configmaps");
  const { page } = visitor;
  const row = page.locator("tbody tr[data-index]").nth(3);
  const height = async () => Math.round((await row.boundingBox())?.height ?? 0);
  await row.waitFor();
  expect(await height()).toBe(34);
  await page.getByRole("button", { name: /^You: / }).click();
  await page.getByRole("menuitemradio", { name: "Dense" }).click();
  await expect.poll(height, { timeout: 5000 }).toBe(28);
  await page.reload();
  await row.waitFor();
  expect(await height()).toBe(28);
  // The whole list is there, down to its end.
  await page.getByRole("main").evaluate((main) => main.scrollTo(0, main.scrollHeight));
  await page.locator(`tr[aria-rowindex="121"]`).waitFor();
  await visitor.expectAccessible("dense rows");
  await visitor.leave();
});

test("columns are chosen, and stay chosen", async () => {
  const visitor = await opened("/c/orchard/kinds/nodes");
  const { page } = visitor;
  const head = (name: string) => page.getByRole("columnheader", { name });
  await head("Version").waitFor();
  expect(await head("Kernel-Version").count()).toBe(0);
  await page.getByText("Columns", { exact: true }).first().click();
  const choices = page.getByRole("group", { name: "Columns" });
  await choices.getByLabel("Kernel-Version").check();
  await choices.getByLabel("Version", { exact: true }).uncheck();
  await head("Kernel-Version").waitFor();
  await visitor.expectAccessible("a choice of columns");
  await page.keyboard.press("Escape");
  await page.reload();
  await head("Kernel-Version").waitFor();
  expect(await head("Version").count()).toBe(1);
  await page.getByText("Columns", { exact: true }).first().click();
  await choices.getByRole("button", { name: "As usual" }).click();
  await head("Kernel-Version").waitFor({ state: "detached" });
  visitor.expectQuiet();
  await visitor.leave();
});

test("an object shows as text, whatever is in it, and can be deleted", async () => {
  const visitor = await opened("/c/orchard/kinds/configmaps?q=map-007");
  const { page } = visitor;
  await page.getByRole("link", { name: "map-007" }).click();
  await page.getByRole("heading", { name: "map-007", level: 1 }).waitFor();
  const yaml = page.getByRole("region", { name: "YAML" });
  await yaml.getByText("onerror=alert(1)").waitFor();
  await page.getByRole("button", { name: "Delete…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("Deleting default/map-007").waitFor();
  await page.getByRole("heading", { name: "ConfigMaps", level: 1 }).waitFor();
  visitor.expectQuiet();
  await page.goto("/c/orchard/objects/configmaps/default/map-007");
  await page.getByText("There is no default/map-007 here").waitFor();
  await visitor.leave();
});

test("an object is changed as YAML: checked, compared and saved", async () => {
  const visitor = await opened("/c/orchard/objects/configmaps/default/map-010");
  const { page } = visitor;
  await page.getByRole("button", { name: "Edit" }).click();
  const editor = page.getByRole("textbox", { name: "YAML of default/map-010" });
  const before = await editor.inputValue();
  expect(before).toContain('number: "10"');
  const review = page.getByRole("button", { name: "Review changes" });
  expect(await review.getAttribute("aria-disabled")).toBe("true");

  // What cannot be is refused, and nothing that was typed is lost.
  const broken = `${before}\nnot: [yaml`;
  await editor.fill(broken);
  await review.click();
  await page.getByText("Nothing was saved.").waitFor();
  expect(await editor.inputValue()).toBe(broken);
  await editor.fill(before.replace("map-010", "another-name"));
  await review.click();
  await page.getByText(/is "another-name" in the body/).waitFor();
  visitor.complaints.length = 0;

  await editor.fill(before.replace('number: "10"', 'number: "eleven"'));
  await review.click();
  const diff = page.getByRole("region", { name: "What would change" });
  await diff.getByText('number: "10"').waitFor();
  await diff.getByText("number: eleven").waitFor();
  const stored = () => world.run("kubectl get configmap map-010 -o jsonpath={.data.number}");
  expect(await stored()).toBe("10");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved default/map-010").waitFor();
  await page.getByRole("region", { name: "YAML" }).getByText("number: eleven").waitFor();
  expect(await stored()).toBe("eleven");

  // Somebody else was faster.
  await page.getByRole("button", { name: "Edit" }).click();
  await world.run("kubectl label configmap map-010 by=another");
  await editor.fill((await editor.inputValue()).replace("eleven", "twelve"));
  await review.click();
  await page.getByText("Somebody has changed it since you read it.").waitFor();
  visitor.complaints.length = 0;
  await page.getByRole("button", { name: "Cancel" }).click();
  visitor.expectQuiet();
  await visitor.leave();
});

test("several objects are selected and deleted, and a mistake deletes nothing", async () => {
  const visitor = await opened("/c/orchard/kinds/configmaps?q=map-10");
  const { page } = visitor;
  await page.getByText("10 match").waitFor();
  await page.getByRole("checkbox", { name: "Select default/map-103" }).check();
  await page.getByRole("checkbox", { name: "Select default/map-104" }).check();
  const bar = page.getByRole("region", { name: "Selection" });
  await bar.getByText("2 selected").waitFor();
  await visitor.expectAccessible("selected rows");
  await bar.getByRole("button", { name: "Delete…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("default/map-104").waitFor();
  await visitor.expectAccessible("deleting several objects");
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("8 match").waitFor();
  await bar.waitFor({ state: "detached" });

  // What was done stands in a log, which outlives the list.
  await page.getByRole("contentinfo").getByRole("button", { name: "Operations" }).click();
  await dialog.getByText("Deleted default/map-104").waitFor();
  await visitor.expectAccessible("the operations of the page");
  await dialog.getByRole("button", { name: /^Forget Deleting/ }).click();
  await dialog.getByText("Nothing is under way.").waitFor();
  await dialog.getByRole("button", { name: "Close" }).first().click();

  // Of many, the cluster has to be named.
  await page.goto("/c/orchard/kinds/configmaps?q=map-0");
  await page.getByRole("checkbox", { name: /^Select the \d+ rows/ }).check();
  await bar.getByRole("button", { name: "Delete…" }).click();
  const sure = dialog.getByRole("button", { name: "Delete", exact: true });
  expect(await sure.getAttribute("aria-disabled")).toBe("true");
  await dialog.getByLabel("Type orchard").fill("orchard");
  expect(await sure.getAttribute("aria-disabled")).toBeNull();
  await dialog.getByRole("button", { name: "Keep" }).click();
  await bar.getByRole("button", { name: "Clear" }).click();
  await bar.waitFor({ state: "detached" });
  visitor.expectQuiet();
  await visitor.leave();
});

test("an object is created from YAML, after the cluster has checked it", async () => {
  const visitor = await opened("/c/orchard/kinds/secrets?namespace=default");
  const { page } = visitor;
  await page.getByRole("button", { name: "Create" }).click();
  const dialog = page.getByRole("dialog");
  const editor = dialog.getByRole("textbox", { name: "YAML of the new Secret" });
  await dialog.getByRole("button", { name: "Check" }).click();
  await dialog.getByText("Nothing was created.").waitFor();
  visitor.complaints.length = 0;
  // What the cluster says of the field at the cursor.
  await dialog.getByText("Help on fields").click();
  const help = dialog.getByRole("region", { name: "Help" });
  await editor.press("Control+End");
  await help.getByText(/^stringData$/).waitFor();
  await editor.press("Control+Home");
  await help.getByText("Secret.apiVersion").waitFor();
  await visitor.expectAccessible("help on fields");
  await dialog.getByText("Help on fields").click();
  const begun = await editor.inputValue();
  const yaml = `${begun.replace("name: ", "name: typed")}type: example.io/own\nstringData: {a: b}\n`;
  await editor.fill(yaml);
  await dialog.getByRole("button", { name: "Check" }).click();
  await dialog.getByText("The cluster would take it.").waitFor();
  await expect(world.run("kubectl get secret typed")).rejects.toThrow(/not found/);
  await dialog.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "typed", level: 1 }).waitFor();
  const kept = () => world.run("kubectl get secret typed -o jsonpath={.type}");
  expect(await kept()).toBe("example.io/own");

  // A change keeps the type, which Kubernetes lets nobody change.
  await page.getByRole("button", { name: "Show values" }).click();
  await page.getByRole("button", { name: "Edit" }).click();
  const change = page.getByRole("textbox", { name: "YAML of default/typed" });
  await change.fill((await change.inputValue()).replace("a: Yg==", "a: Yw=="));
  await page.getByRole("button", { name: "Review changes" }).click();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved default/typed").waitFor();
  expect(await kept()).toBe("example.io/own");
  visitor.expectQuiet();
  await visitor.leave();
});

test("services, ingresses, claims and data are shown in words", async () => {
  const objects = [
    {
      kind: "Service",
      metadata: { name: "web" },
      spec: { ports: [{ port: 80 }], selector: { app: "web" } },
    },
    {
      kind: "PersistentVolumeClaim",
      metadata: { name: "disk" },
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "3Gi" } } },
    },
    { kind: "Secret", metadata: { name: "words" }, stringData: { word: "swordfish" } },
  ].map((object) => ({ apiVersion: "v1", ...object }));
  const ingress = {
    ...{ apiVersion: "networking.k8s.io/v1", kind: "Ingress", metadata: { name: "front" } },
    spec: {
      rules: [
        {
          host: "a.example",
          http: {
            paths: [
              {
                path: "/",
                pathType: "Prefix",
                backend: { service: { name: "web", port: { number: 80 } } },
              },
            ],
          },
        },
      ],
    },
  };
  const file = join(world.folder, "details.json");
  writeFileSync(
    file,
    JSON.stringify({ apiVersion: "v1", kind: "List", items: [...objects, ingress] }),
  );
  await world.run(`kubectl apply -f ${file}`);
  const visitor = await opened("/c/orchard/objects/networking.k8s.io.ingresses/default/front");
  const { page } = visitor;
  await page.getByText("a.example").waitFor();
  await visitor.expectAccessible("an ingress");
  await page.getByRole("link", { name: "web:80" }).click();
  await page.getByText("app=web").waitFor();
  await page.getByRole("table", { name: "Ports" }).getByText("80/TCP").waitFor();
  await page.goto("/c/orchard/objects/persistentvolumeclaims/default/disk");
  await page.getByText("3Gi").waitFor();
  await page.goto("/c/orchard/objects/secrets/default/words?view=data");
  const word = page.getByRole("region", { name: "word" });
  await word.getByText("Hidden").waitFor();
  expect(await page.content()).not.toContain("swordfish");
  await page.getByRole("button", { name: "Show values" }).click();
  await word.getByText("swordfish").waitFor();
  await visitor.expectAccessible("the data of a secret");
  visitor.expectQuiet();
  await visitor.leave();
});

test("values of a Secret show on demand only", async () => {
  const responses: string[] = [];
  const visitor = await world.visitor();
  const { page } = visitor;
  page.on("response", (response) => {
    void response.text().then(
      (text) => responses.push(text),
      () => undefined,
    );
  });
  await visitor.signIn();
  await page.goto("/c/orchard/objects/secrets/default/login");
  const yaml = page.getByRole("region", { name: "YAML" });
  await yaml.getByText("password:").waitFor();
  const encoded = Buffer.from("a-value-to-hide").toString("base64");
  expect(responses.join("\n")).not.toContain(encoded);
  await page.getByRole("button", { name: "Show values" }).click();
  await yaml.getByText(encoded).waitFor();
  await page.getByRole("button", { name: "Hide values" }).click();
  await yaml.getByText(encoded).waitFor({ state: "detached" });
  visitor.expectQuiet();
  await visitor.leave();
});

test("every kind has a list, and users see those that they may list", async () => {
  const visitor = await opened("/c/orchard");
  const { page } = visitor;
  await page.getByRole("link", { name: "All kinds" }).click();
  await page.getByLabel("Filter by name or group").fill("rbac role");
  await page.getByRole("link", { name: "ClusterRole", exact: true }).click();
  await page.getByRole("heading", { name: "ClusterRole", level: 1 }).waitFor();
  await page.getByRole("link", { name: "cluster-admin" }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByPlaceholder("Cluster, page or action").fill("pods of orchard");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Pods", level: 1 }).waitFor();
  await page.getByRole("cell", { name: "Running" }).first().waitFor();
  visitor.expectQuiet();
  await visitor.leave();

  const viewer = await world.visitor();
  await viewer.signIn("", "vera", VIEWER_PASSWORD);
  const side = viewer.page.getByRole("navigation", { name: "Cluster orchard" });
  await viewer.page.goto("/c/orchard");
  await side.getByRole("link", { name: "All kinds" }).waitFor();
  await side.getByRole("link", { name: "Secrets" }).waitFor({ state: "detached" });
  await viewer.page.goto("/c/orchard/kinds/secrets");
  await viewer.page.getByText(/There are no Secrets here|You may not list Secrets here/).waitFor();
  await viewer.leave();
});
