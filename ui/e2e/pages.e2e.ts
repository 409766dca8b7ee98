/** Every page in both themes: pictures to look at, nothing that keeps people out, no complaint of the browser. */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, SCREENS } from "./programs.ts";
import { type Theme, type Visitor, World } from "./world.ts";

const CLUSTERS = 5;
const world = new World(["--clusters", String(CLUSTERS), "--nodes", "6", "--pods", "900"]);

/** A fleet with something to see: names, labels, load, one that waits. */
const FLEET: { name: string; labels: Record<string, string>; kubeconfig?: string }[] = [
  {
    name: "prod-eu-1",
    labels: { environment: "production", region: "eu-west-1" },
    kubeconfig: "admin.kubeconfig",
  },
  {
    name: "prod-us-1",
    labels: { environment: "production", region: "us-east-1" },
    kubeconfig: "admin-1.kubeconfig",
  },
  {
    name: "staging-eu",
    labels: { environment: "staging", region: "eu-west-1" },
    kubeconfig: "admin-2.kubeconfig",
  },
  { name: "ci-runners", labels: { team: "tooling" }, kubeconfig: "admin-3.kubeconfig" },
  { name: "lab-berlin", labels: { team: "lab" } },
];

beforeAll(async () => {
  mkdirSync(SCREENS, { recursive: true });
  await world.start();
  const visitor = await world.visitor();
  await visitor.signIn();
  for (const { name, labels, kubeconfig } of FLEET) {
    const command = await make(visitor, name, labels);
    if (kubeconfig) await world.run(command, kubeconfig);
  }
  for (const { name, kubeconfig } of FLEET) {
    if (kubeconfig) await visitor.row(name).getByText("Active").waitFor();
  }
  await world.run("kubectl cordon node-5", "admin.kubeconfig");
  await visitor.leave();
});
afterAll(() => world.end());

/** Makes a cluster through the API, as a page of this origin may, and gives its command. */
async function make(
  visitor: Visitor,
  name: string,
  labels: Record<string, string>,
): Promise<string> {
  const id = await visitor.page.evaluate(
    async ([name, labels]) => {
      const csrf = document.cookie.replace(/.*CSRF=([^;]*).*/, "$1");
      const answer = await fetch("/v3/clusters", {
        method: "POST",
        headers: { "content-type": "application/json", "x-api-csrf": csrf },
        body: JSON.stringify({ name, labels }),
      });
      return (await answer.json()).id as string;
    },
    [name, labels] as const,
  );
  return eventually(`a command for ${name}`, async () => {
    const tokens = await visitor.page.evaluate(async (id) => {
      const answer = await fetch(`/v3/clusterregistrationtokens?clusterId=${id}`);
      return (await answer.json()).data as { insecureCommand?: string }[];
    }, id);
    const command = tokens[0]?.insecureCommand;
    if (!command) throw new Error(JSON.stringify(tokens));
    return command;
  });
}

/** Takes the picture once fonts and rows are there, and looks for barriers. */
async function picture(visitor: Visitor, name: string, theme: Theme): Promise<void> {
  const { page } = visitor;
  await page.evaluate(() => document.fonts.ready);
  await eventually("all motion has ended", async () => {
    const moving = await page.evaluate(
      () =>
        document
          .getAnimations()
          .filter((one) => one.effect?.getComputedTiming().endTime !== Number.POSITIVE_INFINITY)
          .length,
    );
    expect(moving).toBe(0);
  });
  await page.screenshot({ path: join(SCREENS, `${name}-${theme}.png`) });
  await visitor.expectAccessible(`${name}, ${theme}`);
}

describe.each(["light", "dark"] as const)("in %s", (theme) => {
  test("every page can be used by everybody, and the browser has nothing to complain of", async () => {
    const visitor = await world.visitor(theme);
    const { page } = visitor;
    await page.goto("/");
    await page.getByLabel("User name").waitFor();
    await picture(visitor, "login", theme);

    await visitor.signIn();
    await visitor.row("prod-eu-1").getByText("Active").waitFor();
    await visitor.freshness("Live");
    await picture(visitor, "clusters", theme);

    await page.keyboard.press("Control+k");
    await page.getByPlaceholder("Cluster, page or action").fill("prod");
    await page.getByRole("option", { name: /prod-us-1/ }).waitFor();
    await picture(visitor, "palette", theme);
    await page.keyboard.press("Escape");

    await page.getByRole("button", { name: /^Waiting/ }).click();
    await page.getByRole("link", { name: "Show the command" }).click();
    await page.getByText("Watch it arrive").waitFor();
    await page.getByRole("button", { name: "Copy the import command" }).waitFor();
    await picture(visitor, "import", theme);
    await page.keyboard.press("Escape");

    await page.getByRole("button", { name: "Import cluster" }).click();
    await page.getByLabel("Name", { exact: true }).fill("Payments_EU");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Use payments-eu" }).waitFor();
    await picture(visitor, "import-name", theme);
    await page.keyboard.press("Escape");

    await page.goto("/clusters?q=nothing-like-this");
    await page.getByText("clusters match").waitFor();
    await picture(visitor, "clusters-no-match", theme);

    await page.goto("/c/prod-eu-1");
    await page.getByText("node-1", { exact: true }).waitFor();
    await picture(visitor, "cluster", theme);
    await page.getByRole("button", { name: /^prod-eu-1 .*switch cluster$/ }).click();
    await page.getByPlaceholder("Find a cluster").waitFor();
    await picture(visitor, "cluster-switcher", theme);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "More actions for prod-eu-1" }).click();
    await page.getByRole("menuitem", { name: "Remove…" }).click();
    await page.getByText("2 projects").waitFor();
    await picture(visitor, "remove", theme);
    await page.keyboard.press("Escape");

    await page.goto("/c/prod-eu-1/nodes");
    await page.getByRole("cell", { name: "node-1" }).waitFor();
    await picture(visitor, "nodes", theme);

    await page.goto("/c/lab-berlin/conditions");
    await page.getByText("What helps:").first().waitFor();
    await picture(visitor, "conditions", theme);

    await page.goto("/audit");
    await page.getByRole("cell", { name: "admin", exact: true }).first().waitFor();
    await picture(visitor, "audit", theme);
    await page.goto("/c/prod-eu-1/audit");
    await page.getByRole("cell", { name: "Agent registered" }).waitFor();
    await picture(visitor, "cluster-audit", theme);

    await page.getByRole("button", { name: /^You: / }).click();
    await page.getByRole("menuitemradio", { name: "Dark" }).waitFor();
    await picture(visitor, "person", theme);
    await page.keyboard.press("Escape");

    await page.goto("/c/no-such-cluster");
    await page.getByText("There is no cluster no-such-cluster").waitFor();
    await picture(visitor, "no-such-cluster", theme);
    visitor.expectQuiet();
    await visitor.leave();
  });
});

test("a narrow window loses nothing that matters", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await page.setViewportSize({ width: 320, height: 640 });
  await visitor.row("prod-eu-1").getByText("Active").waitFor();
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(wide).toBeLessThanOrEqual(320);
  // The name of what needs a look, and its way on, are within the window.
  expect((await page.getByRole("link", { name: "lab-berlin" }).boundingBox())?.x).toBeLessThan(320);
  await page.getByRole("link", { name: "Show the command" }).click({ trial: true });
  await page.screenshot({ path: join(SCREENS, "clusters-narrow-light.png") });
  await visitor.expectAccessible("clusters, narrow");
  visitor.expectQuiet();
  await visitor.leave();
});
