/**
 * Texts that would be code in a careless page, in fields that users and programs fill: no page runs
 * them, asks another host, or breaks.
 */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Visitor, World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "1"]);
/** Nobody listens there; a request to it is the fault. */
const CANARY = "canary.example.org";
const CORPUS = [
  `"><img src=https://${CANARY}/img onerror=alert(1)>`,
  `<script src=https://${CANARY}/script></script>`,
  "<svg/onload=alert(1)>",
  "javascript:alert(1)",
  "{{constructor.constructor('alert(1)')()}}",
  `'-alert(1)-' \u202etxt.exe`,
];
const ALL = CORPUS.join(" ");

/** Its columns are named and filled by whoever made it. */
const definition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "notes.hostile.example" },
  spec: {
    group: "hostile.example",
    scope: "Namespaced",
    names: { plural: "notes", singular: "note", kind: "Note" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        additionalPrinterColumns: [
          { name: CORPUS[0], type: "string", jsonPath: ".spec.text", description: ALL },
        ],
        schema: {
          openAPIV3Schema: {
            type: "object",
            description: ALL,
            properties: {
              spec: {
                type: "object",
                properties: { text: { type: "string", description: ALL } },
              },
            },
          },
        },
      },
    ],
  },
};
const note = {
  apiVersion: "hostile.example/v1",
  kind: "Note",
  metadata: { namespace: "default", name: "hostile" },
  spec: { text: ALL },
};

const objects = {
  apiVersion: "v1",
  kind: "List",
  items: [
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { namespace: "default", name: "hostile", annotations: { note: ALL } },
      data: { text: ALL },
    },
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: {
        namespace: "default",
        name: "hostile",
        annotations: { "kubernetes.io/change-cause": ALL },
      },
      spec: {
        replicas: 1,
        selector: { matchLabels: { app: "hostile" } },
        template: {
          metadata: { labels: { app: "hostile" }, annotations: { note: ALL } },
          spec: {
            containers: [
              {
                name: "main",
                image: `registry.example/${CORPUS[2]}`,
                env: [{ name: "NOTE", value: ALL }],
              },
            ],
          },
        },
      },
    },
  ],
};

beforeAll(async () => {
  await world.start();
  const file = join(world.folder, "hostile.json");
  writeFileSync(file, JSON.stringify(objects));
  await world.run(`kubectl create -f ${file}`);
  const custom = join(world.folder, "custom.json");
  writeFileSync(custom, JSON.stringify(definition));
  await world.run(`kubectl create -f ${custom}`);
  await world.run("kubectl wait crd notes.hostile.example --for=condition=Established");
  writeFileSync(custom, JSON.stringify(note));
  await world.run(`kubectl create -f ${custom}`);
  const visitor = await world.visitor();
  await visitor.signIn();
  await world.run(await visitor.importCommand("orchard"));
  await visitor.row("orchard").getByText("Active").waitFor();
  await visitor.leave();
});
afterAll(() => world.end());

/** What a page did that it must not. */
function watch(visitor: Visitor): string[] {
  const faults: string[] = [];
  visitor.page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  visitor.context.on("request", (request) => {
    if (request.url().includes(CANARY)) faults.push(`request: ${request.url()}`);
  });
  return faults;
}

async function report(): Promise<void> {
  const uid = (
    await world.run("kubectl get deployment hostile -o jsonpath={.metadata.uid}")
  ).trim();
  const event = {
    apiVersion: "v1",
    kind: "Event",
    metadata: { namespace: "default", name: "hostile.1" },
    type: "Warning",
    reason: "<b>Reason",
    message: ALL.slice(0, 1000),
    involvedObject: {
      apiVersion: "apps/v1",
      kind: "Deployment",
      namespace: "default",
      name: "hostile",
      uid,
    },
    lastTimestamp: new Date().toISOString(),
  };
  const file = join(world.folder, "event.json");
  writeFileSync(file, JSON.stringify(event));
  await world.run(`kubectl create -f ${file}`);
}

test("no page runs what is in a field", { meta: { guarantee: "secrecy" } }, async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  const faults = watch(visitor);
  await visitor.signIn();
  await report();
  const { data } = await visitor.api<{ data: { id: string }[] }>(
    "GET",
    "/v3/clusters?name=orchard",
  );
  const clusterId = data[0]?.id;
  await visitor.api("POST", "/v3/users", {
    username: "mallory",
    password: "a password of Mallory",
    name: ALL,
    description: ALL,
  });
  await visitor.api("POST", "/v3/projects", { clusterId, name: CORPUS[0], description: ALL });
  await visitor.api("POST", "/v3/tokens", { description: ALL, ttl: 3_600_000 });
  await visitor.api("POST", "/v3/globalroles", { name: ALL, description: ALL });

  const deployment = "/c/orchard/objects/apps.deployments/default/hostile";
  for (const [path, text] of [
    ["/users", CORPUS[2]],
    ["/users/roles", CORPUS[2]],
    ["/tokens", CORPUS[2]],
    ["/audit", "orchard"],
    ["/c/orchard/projects", CORPUS[0]],
    ["/c/orchard", "<b>Reason"],
    ["/c/orchard/kinds/events", "<b>Reason"],
    ["/c/orchard/objects/configmaps/default/hostile", CORPUS[2]],
    ["/c/orchard/kinds/hostile.example.notes", CORPUS[2]],
    ["/c/orchard/objects/hostile.example.notes/default/hostile", CORPUS[2]],
    [`${deployment}?view=revisions`, CORPUS[2]],
    [`${deployment}?view=events`, CORPUS[2]],
    [`${deployment}?view=yaml`, CORPUS[2]],
  ] as const) {
    await page.goto(path);
    await page
      .getByText(text ?? "")
      .first()
      .waitFor({ state: "attached" });
    expect(faults, path).toEqual([]);
    expect(await page.locator("main img, main script, main iframe").count(), path).toBe(0);
  }
  await page.getByRole("link", { name: "Pods", exact: true }).last().click();
  await page.getByRole("table", { name: "Pods" }).getByRole("link").first().click();
  await page
    .getByRole("table", { name: "Containers" })
    .getByText(CORPUS[2] ?? "")
    .waitFor();
  await page.getByRole("link", { name: "Logs" }).click();
  await page
    .getByRole("log")
    .getByText(CORPUS[2] ?? "")
    .first()
    .waitFor();
  expect(faults).toEqual([]);
  visitor.expectQuiet();
  await visitor.leave();
});
