/**
 * Every page in both themes and two widths: screenshots, accessibility, no errors of the browser.
 */

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
    const command = await visitor.importCommand(name, labels);
    if (kubeconfig) await world.run(command, kubeconfig);
  }
  for (const { name, kubeconfig } of FLEET) {
    if (kubeconfig) await visitor.row(name).getByText("Active").waitFor();
  }
  await world.run("kubectl cordon node-5", "admin.kubeconfig");
  // A deployment with a history.
  const deployment = "kubectl create deployment web --image=registry.example/web";
  await world.run(`${deployment}:1 --port=80 --replicas=3`, "admin.kubeconfig");
  await world.run("kubectl rollout status deployment/web --timeout=30s", "admin.kubeconfig");
  await world.run(
    "kubectl set image deployment/web web=registry.example/web:2",
    "admin.kubeconfig",
  );
  await world.run("kubectl rollout status deployment/web --timeout=30s", "admin.kubeconfig");
  await visitor.leave();
});
afterAll(() => world.end());

/** A theme and a size of the window. */
interface View {
  theme: Theme;
  width: number;
  height: number;
}

const VIEWS: View[] = (["light", "dark"] as const).flatMap((theme) => [
  { theme, width: 1440, height: 900 },
  { theme, width: 390, height: 844 },
]);

/** Takes the screenshot once fonts and rows are loaded, and checks accessibility. */
async function picture(visitor: Visitor, name: string, { theme, width }: View): Promise<void> {
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
  const size = width < 900 ? "-narrow" : "";
  await page.screenshot({ path: join(SCREENS, `${name}${size}-${theme}.png`) });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(wide, `the page is wider than the window: ${name}`).toBeLessThanOrEqual(width);
  await visitor.expectAccessible(`${name}, ${theme}, ${width}`);
}

async function visitorFor({ theme, width, height }: View): Promise<Visitor> {
  const visitor = await world.visitor(theme);
  await visitor.page.setViewportSize({ width, height });
  return visitor;
}

describe.each(VIEWS)("in $theme, $width wide", (view) => {
  test("signing in, the list and its dialogs can be used by everybody", async () => {
    const visitor = await visitorFor(view);
    const { page } = visitor;
    await page.goto("/");
    await page.getByLabel("User name").waitFor();
    await picture(visitor, "login", view);
    await page.getByLabel("User name").fill("admin");
    await page.getByLabel("Password", { exact: true }).fill("not this one");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").waitFor();
    await picture(visitor, "login-refused", view);
    visitor.complaints.length = 0;

    await visitor.signIn();
    await visitor.row("prod-eu-1").getByText("Active").waitFor();
    await visitor.freshness("Live");
    await picture(visitor, "clusters", view);

    await page.keyboard.press("Control+k");
    const palette = page.getByPlaceholder("Cluster, page or action");
    await palette.fill("prod");
    await page.getByRole("option", { name: /^prod-us-1/ }).waitFor();
    await picture(visitor, "palette", view);
    await palette.fill("nothing like this");
    await page.getByText("Nothing matches all of these words.").waitFor();
    await picture(visitor, "palette-no-match", view);
    await page.keyboard.press("Escape");

    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard map" }).waitFor();
    await picture(visitor, "keys", view);
    await page.keyboard.press("Escape");

    await page.getByRole("button", { name: /^You: / }).click();
    await page.getByRole("menuitem", { name: "About Drover" }).click();
    await page.getByText(/^Kubernetes v1\./).waitFor();
    await picture(visitor, "about", view);
    await page.keyboard.press("Escape");

    await page.getByRole("button", { name: /^Waiting/ }).click();
    await page.getByRole("link", { name: "Show the command" }).click();
    await page.getByText("Watch it arrive").waitFor();
    await page.getByRole("button", { name: "Copy the import command" }).waitFor();
    await picture(visitor, "import", view);
    await page.keyboard.press("Escape");

    await page.getByRole("button", { name: "Import cluster" }).click();
    await page.getByLabel("Name", { exact: true }).fill("Payments_EU");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Use payments-eu" }).waitFor();
    await picture(visitor, "import-name", view);
    await page.keyboard.press("Escape");

    await page.goto("/clusters?q=nothing-like-this");
    await page.getByText("clusters match").waitFor();
    await picture(visitor, "clusters-no-match", view);
    visitor.expectQuiet();
    await visitor.leave();
  });

  test("the pages of a cluster can be used by everybody", async () => {
    const visitor = await visitorFor(view);
    const { page } = visitor;
    await visitor.signIn();
    await page.goto("/c/prod-eu-1");
    await page.getByText("node-1", { exact: true }).waitFor();
    await picture(visitor, "cluster", view);
    await page.getByRole("button", { name: /^prod-eu-1 .*switch cluster$/ }).click();
    await page.getByPlaceholder("Find a cluster").waitFor();
    await picture(visitor, "cluster-switcher", view);
    await page.getByPlaceholder("Find a cluster").fill("nothing like this");
    await page.getByText("No cluster matches").waitFor();
    await picture(visitor, "cluster-switcher-no-match", view);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "More actions for prod-eu-1" }).click();
    await page.getByRole("menuitem", { name: "Remove…" }).waitFor();
    await picture(visitor, "cluster-menu", view);
    await page.getByRole("menuitem", { name: "Remove…" }).click();
    await page.getByText("2 projects").waitFor();
    await picture(visitor, "remove", view);
    await page.keyboard.press("Escape");

    await page.goto("/c/prod-eu-1/nodes");
    await page.getByRole("cell", { name: "node-1", exact: true }).waitFor();
    await picture(visitor, "nodes", view);

    await page.goto("/c/prod-eu-1/kinds/pods");
    await page.getByRole("cell", { name: "Running" }).first().waitFor();
    await page.getByText(/^1–100 of \d/).waitFor();
    await picture(visitor, "pods", view);
    await page.goto("/c/prod-eu-1/kinds/pods?q=nothing-like-this");
    await page.getByText("Nothing matches").waitFor();
    await picture(visitor, "pods-no-match", view);
    await page.goto("/c/prod-eu-1/kinds");
    await page.getByRole("link", { name: "ConfigMap", exact: true }).waitFor();
    await picture(visitor, "kinds", view);
    await page.goto("/c/prod-eu-1/objects/namespaces/default");
    await page.getByText("kind: Namespace").waitFor();
    await picture(visitor, "object", view);
    await page.goto("/c/prod-eu-1/objects/services/default/kubernetes");
    await page.getByRole("table", { name: "Ports" }).waitFor();
    await picture(visitor, "service", view);
    await page.goto("/c/prod-eu-1/objects/configmaps/default/kube-root-ca.crt?view=data");
    await page.getByRole("region", { name: "ca.crt" }).waitFor();
    await picture(visitor, "data", view);

    await page.goto("/c/prod-eu-1/projects");
    await page.getByRole("link", { name: "Default", exact: true }).waitFor();
    await picture(visitor, "projects", view);
    await page.getByRole("link", { name: "Default", exact: true }).click();
    await page.getByRole("link", { name: "default", exact: true }).waitFor();
    await picture(visitor, "project", view);
    await page
      .getByRole("region", { name: /^Quota/ })
      .getByRole("button")
      .click();
    await page.getByRole("dialog").waitFor();
    await picture(visitor, "project-quota", view);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Add member" }).click();
    await page.getByRole("radio", { name: /^Project Member/ }).waitFor();
    await picture(visitor, "project-member", view);
    await page.keyboard.press("Escape");

    await page.goto("/c/prod-eu-1/members");
    await page
      .getByRole("region", { name: /^Members/ })
      .getByText("Cluster Owner")
      .waitFor();
    await picture(visitor, "members", view);

    await page.goto("/c/lab-berlin");
    await page.getByText("nobody has run the import command so far").waitFor();
    await picture(visitor, "cluster-waiting", view);
    await page.goto("/c/lab-berlin/conditions");
    await page.getByText("What helps:").first().waitFor();
    await picture(visitor, "conditions", view);

    await page.goto("/c/prod-eu-1/audit");
    await page.getByRole("cell").first().waitFor();
    await picture(visitor, "cluster-audit", view);

    await page.goto("/c/no-such-cluster");
    await page.getByText("There is no cluster no-such-cluster").waitFor();
    await picture(visitor, "no-such-cluster", view);
    visitor.expectQuiet();
    await visitor.leave();
  });

  test("workloads and pods can be used by everybody", async () => {
    const visitor = await visitorFor(view);
    const { page } = visitor;
    await visitor.signIn();
    await page.goto("/c/prod-eu-1/objects/apps.deployments/default/web");
    await page.getByRole("table", { name: "Pods" }).getByRole("link").first().waitFor();
    await picture(visitor, "deployment", view);
    await page.getByRole("button", { name: "Scale…" }).click();
    await page.getByRole("dialog").getByLabel("Pods").waitFor();
    await picture(visitor, "scale", view);
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Map", exact: true }).click();
    await page.getByRole("region", { name: "Map" }).getByRole("link").first().waitFor();
    await picture(visitor, "map", view);
    await page.keyboard.press("Control+`");
    await page.locator("[data-shown=true] .xterm-rows").getByText("is simulated").waitFor();
    await picture(visitor, "kubectl-shell", view);
    await page.getByRole("button", { name: "End the shell in prod-eu-1" }).click();
    await page.getByRole("link", { name: "Revisions" }).click();
    await page.getByRole("row", { name: /Current/ }).waitFor();
    await picture(visitor, "revisions", view);
    await page.getByRole("button", { name: /^Roll back to/ }).click();
    await page.getByRole("region", { name: "What would change" }).waitFor();
    await picture(visitor, "rollback", view);
    await page.keyboard.press("Escape");

    await page.getByRole("link", { name: "Pods", exact: true }).last().click();
    await page.getByRole("table", { name: "Pods" }).getByRole("link").first().click();
    await page.getByRole("table", { name: "Containers" }).waitFor();
    await picture(visitor, "pod", view);
    await page.getByRole("link", { name: "Events", exact: true }).last().click();
    await page.getByText("No events").waitFor();
    await picture(visitor, "events", view);
    await page.getByRole("link", { name: "Logs" }).click();
    await page
      .getByRole("log")
      .getByText(/listening on/)
      .waitFor();
    await picture(visitor, "logs", view);
    await page.getByRole("link", { name: "Shell" }).click();
    await page.getByText("Connected").waitFor();
    await page
      .locator(".xterm-rows")
      .getByText(/simulated/)
      .first()
      .waitFor();
    await picture(visitor, "shell", view);
    visitor.expectQuiet();
    await visitor.leave();
  });

  test("the guide can be read by everybody, without a login", async () => {
    const visitor = await visitorFor(view);
    const { page } = visitor;
    await page.goto("/");
    await page.getByRole("link", { name: "Guide" }).click();
    await page.getByRole("heading", { name: "Drover's guide", level: 1 }).waitFor();
    const links = await page
      .getByRole("navigation", { name: "Pages" })
      .getByRole("link")
      .evaluateAll((all) => all.map((link) => link.getAttribute("href") ?? ""));
    expect(links.length).toBeGreaterThan(10);
    for (const href of links) {
      await page.goto(href);
      expect(await page.getByRole("heading", { level: 1 }).count()).toBe(1);
      await picture(visitor, `guide${href.replaceAll("/", "-")}`, view);
    }
    visitor.expectQuiet();
    await page.goto("/docs/nosuch");
    await page.getByRole("heading", { name: "No such page", level: 1 }).waitFor();
    await picture(visitor, "guide-no-such-page", view);
    await visitor.leave();
  });

  test("the pages around the clusters can be used by everybody", async () => {
    const visitor = await visitorFor(view);
    const { page } = visitor;
    await visitor.signIn();
    await page.goto("/audit");
    await page.getByRole("cell", { name: "admin", exact: true }).first().waitFor();
    await picture(visitor, "audit", view);

    await page.goto("/users");
    await page.getByRole("row", { name: /Admin/ }).waitFor();
    await picture(visitor, "users", view);
    await page.getByRole("button", { name: "Create user" }).click();
    await page.getByRole("dialog").getByLabel("User name").waitFor();
    await picture(visitor, "create-user", view);
    await page.keyboard.press("Escape");

    await page.getByRole("link", { name: "Roles" }).click();
    await page.getByText("Manage Users", { exact: true }).click();
    await page
      .getByText(/on users/)
      .first()
      .waitFor();
    await picture(visitor, "roles", view);
    await page.getByRole("button", { name: "Copy…" }).first().click();
    await page.getByRole("dialog").getByRole("group", { name: "Rule 1" }).waitFor();
    await picture(visitor, "role", view);
    await page.keyboard.press("Escape");
    await page.goto("/users/groups");
    await page.getByText("No group has a global role").waitFor();
    await picture(visitor, "groups", view);
    await page.goto("/providers");
    await page.getByRole("button", { name: "Set up OpenLDAP…" }).waitFor();
    await picture(visitor, "providers", view);
    await page.getByRole("button", { name: "Set up Active Directory…" }).click();
    await page.getByRole("dialog").getByLabel("User search base").waitFor();
    await picture(visitor, "provider", view);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Set up OpenID Connect…" }).click();
    await page.getByRole("dialog").getByLabel("Issuer").waitFor();
    await picture(visitor, "provider-pages", view);
    await page.keyboard.press("Escape");

    await page.goto("/settings");
    await page.getByRole("row", { name: /^server-url/ }).waitFor();
    await picture(visitor, "settings", view);
    await page.getByRole("button", { name: "Change password-min-length…" }).click();
    await page.getByRole("dialog").getByLabel("Value").waitFor();
    await picture(visitor, "setting", view);
    await page.keyboard.press("Escape");

    await page.goto("/tokens");
    await page.getByRole("row", { name: /This browser/ }).waitFor();
    await picture(visitor, "tokens", view);
    await page.getByRole("button", { name: "Create token" }).click();
    await page.getByRole("dialog").getByLabel("Description").waitFor();
    await picture(visitor, "create-token", view);
    await page.keyboard.press("Escape");

    await page.getByRole("button", { name: /^You: / }).click();
    await page.getByRole("menuitemradio", { name: "Dark" }).waitFor();
    await page.getByRole("menuitem", { name: "Guide" }).waitFor();
    await picture(visitor, "person", view);
    await page.keyboard.press("Escape");

    await page.goto("/password");
    await page.getByLabel("Current password").waitFor();
    await picture(visitor, "password", view);
    visitor.expectQuiet();
    await page.getByLabel("Current password").fill("not this one");
    await page.getByLabel("New password").fill("something long enough");
    await page.getByRole("button", { name: "Change password" }).click();
    await page.getByText("That is not your current password.").waitFor();
    await picture(visitor, "password-refused", view);

    await page.goto("/nosuch");
    await page.getByRole("heading", { name: "No such page" }).waitFor();
    await picture(visitor, "no-such-page", view);
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
  // The name of what needs attention, and its next step, are within the window.
  expect((await page.getByRole("link", { name: "lab-berlin" }).boundingBox())?.x).toBeLessThan(320);
  await page.getByRole("link", { name: "Show the command" }).click({ trial: true });
  await page.screenshot({ path: join(SCREENS, "clusters-narrow-light.png") });
  await visitor.expectAccessible("clusters, narrow");
  visitor.expectQuiet();
  await visitor.leave();
});

test("at 200 % zoom, and for who wants no motion, the main pages fit and stand still", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  // A window of 1440 by 900, of which zoom leaves half.
  await page.setViewportSize({ width: 720, height: 450 });
  await page.emulateMedia({ reducedMotion: "reduce" });
  const places = [
    ...["/clusters", "/c/prod-eu-1", "/c/prod-eu-1/nodes", "/c/prod-eu-1/conditions"],
    ...["/c/prod-eu-1/kinds/pods", "/c/prod-eu-1/objects/apps.deployments/default/web"],
    ...["/c/prod-eu-1/projects", "/c/prod-eu-1/members", "/users", "/users/roles", "/users/groups"],
    ...["/providers", "/drivers", "/settings", "/tokens", "/audit"],
  ];
  for (const place of places) {
    await page.goto(place);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page
      .getByLabel(/^Reading/)
      .first()
      .waitFor({ state: "detached" });
    await visitor.settled();
    const [wide, moving] = await page.evaluate(() => [
      document.documentElement.scrollWidth,
      // What moves for longer than a blink.
      document.getAnimations().filter((one) => {
        const { endTime } = one.effect?.getComputedTiming() ?? {};
        return Number(endTime) > 50;
      }).length,
    ]);
    expect(wide, place).toBeLessThanOrEqual(720);
    expect(moving, place).toBe(0);
    await visitor.expectAccessible(`${place} at 200 %`);
  }
  visitor.expectQuiet();
  await visitor.leave();
});

test.each(VIEWS)("what cannot be reached is as usable in $theme, $width wide", async (view) => {
  const visitor = await visitorFor(view);
  const { page } = visitor;
  await visitor.signIn();
  await page.goto("/c/prod-us-1");
  await page.getByText("node-1", { exact: true }).waitFor();
  await world.sim.kill();
  await page.getByText(/^Agent silent for/).waitFor();
  await picture(visitor, "cluster-unavailable", view);
  await page.goto("/c/prod-us-1/nodes");
  await page.getByRole("cell", { name: "Was ready" }).first().waitFor();
  await picture(visitor, "nodes-unavailable", view);
  await page.goto("/c/prod-us-1/conditions");
  await page.getByText("As last known: ").first().waitFor();
  await picture(visitor, "conditions-unavailable", view);
  await page.goto("/clusters");
  await visitor.row("prod-us-1").getByText("Unavailable").waitFor();
  await picture(visitor, "clusters-unavailable", view);
  await world.sim.start();
  await visitor.row("prod-us-1").getByText("Active").waitFor();

  await world.server.kill();
  await page.getByText("The server does not respond.").waitFor();
  await picture(visitor, "clusters-offline", view);
  await page.getByRole("link", { name: "prod-us-1" }).click();
  await page.getByRole("heading", { name: "prod-us-1", level: 1 }).waitFor();
  await picture(visitor, "cluster-offline", view);
  await world.startServer();
  await page.getByText("The server does not respond.").waitFor({ state: "detached" });
  await visitor.leave();
});
