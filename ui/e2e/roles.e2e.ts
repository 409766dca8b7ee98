/**
 * A walk over the pages as owner, project member, reader and nobody: what a page offers, the server
 * grants; what it would refuse is locked, with the reason.
 */

import { afterAll, beforeAll, expect, test } from "vitest";
import { PASSWORD, type Visitor, World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "1"]);
let clusterId = "";

beforeAll(async () => {
  await world.start();
  const visitor = await world.visitor();
  await visitor.signIn();
  await world.run(await visitor.importCommand("orchard"));
  await visitor.row("orchard").getByText("Active").waitFor();
  type Found = { data: { id: string }[] };
  const clusters = await visitor.api<Found>("GET", "/v3/clusters?name=orchard");
  clusterId = clusters.data[0]?.id ?? "";
  const project = await visitor.api<{ id: string }>("POST", "/v3/projects", {
    clusterId,
    name: "shop",
  });
  await world.run("kubectl create namespace shop-web");
  await visitor.api("POST", `/v3/cluster/${clusterId}/namespaces/shop-web?action=move`, {
    projectId: project.id,
  });
  await world.run("kubectl create deployment web --image=registry.example/web:1 -n shop-web");
  await world.run("kubectl create secret generic key --from-literal=a=b -n shop-web");
  const users = { olive: undefined, mia: "project-member", rita: "read-only", nina: undefined };
  for (const [username, role] of Object.entries(users)) {
    await visitor.makeUser({ username, password: PASSWORD, mustChangePassword: false });
    const { data } = await visitor.api<Found>("GET", `/v3/users?username=${username}`);
    const userId = data[0]?.id;
    if (role) {
      const binding = { projectId: project.id, roleTemplateId: role, userId };
      await visitor.api("POST", "/v3/projectroletemplatebindings", binding);
    }
    if (username === "olive") {
      const binding = { clusterId, roleTemplateId: "cluster-owner", userId };
      await visitor.api("POST", "/v3/clusterroletemplatebindings", binding);
    }
  }
  await visitor.leave();
});
afterAll(() => world.end());

interface Offer {
  page: string;
  /** What shows that the page is there. */
  shown: string;
  /** A button of it, and the right that it needs. */
  button: string;
  verb: string;
  group: string;
  resource: string;
  namespace: string;
}

const SHOP = { namespace: "shop-web" };
const WEB = { page: "/c/orchard/objects/apps.deployments/shop-web/web", shown: "web" };
const APPS = { group: "apps", resource: "deployments", ...SHOP };
const OFFERS: Offer[] = [
  { ...WEB, button: "Scale…", verb: "update", ...APPS },
  { ...WEB, button: "Restart", verb: "update", ...APPS },
  { ...WEB, button: "Delete…", verb: "delete", ...APPS },
  {
    page: "/c/orchard/objects/secrets/shop-web/key",
    shown: "key",
    button: "Delete…",
    verb: "delete",
    group: "",
    resource: "secrets",
    ...SHOP,
  },
];

/** Whether the caller has a right in the cluster, as the cluster itself says. */
async function may(
  visitor: Visitor,
  { verb, group, resource, namespace }: Offer,
): Promise<boolean> {
  const review = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    spec: { resourceAttributes: { verb, group, resource, namespace } },
  };
  const path = `/k8s/clusters/${clusterId}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews`;
  const { status } = await visitor.api<{ status: { allowed: boolean } }>("POST", path, review);
  return status.allowed;
}

const PAGES = [
  "/clusters",
  "/c/orchard",
  "/c/orchard/nodes",
  "/c/orchard/conditions",
  "/c/orchard/projects",
  "/c/orchard/members",
  "/c/orchard/access",
  "/c/orchard/audit",
  "/c/orchard/kinds",
  "/c/orchard/kinds/apps.deployments",
  "/c/orchard/kinds/pods",
  "/c/orchard/kinds/secrets",
  "/c/orchard/kinds/namespaces",
  "/users",
  "/users/roles",
  "/users/groups",
  "/providers",
  "/drivers",
  "/settings",
  "/tokens",
  "/audit",
];

/** Expected: what each may do with the offers above, in their order. */
test.each([
  ["olive", [true, true, true, true]],
  ["mia", [true, true, true, true]],
  ["rita", [false, false, false, undefined]],
] as const)("%s finds what the cluster grants, and locks with reasons", async (name, expected) => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn("", name, PASSWORD);
  for (const [at, offer] of OFFERS.entries()) {
    await page.goto(offer.page);
    if (expected[at] === undefined) {
      // One who may not read it finds that said, and no button.
      await page.getByText(/^You may not see/).waitFor();
      expect(await page.getByRole("button", { name: offer.button }).count()).toBe(0);
      continue;
    }
    await page.getByRole("heading", { name: offer.shown, level: 1 }).waitFor();
    const button = page.getByRole("button", { name: offer.button, exact: true });
    await button.waitFor();
    const allowed = await may(visitor, offer);
    expect(allowed, offer.button).toBe(expected[at]);
    const locked = await button.getAttribute("aria-disabled");
    expect(locked, `${name}: ${offer.button}`).toBe(allowed ? null : "true");
    if (!allowed) {
      await button.hover();
      await page
        .getByRole("tooltip")
        .filter({ hasText: /do not let you|may not/ })
        .waitFor();
    }
  }
  await visitor.leave();
});

test.each(["olive", "mia", "rita", "nina"])("every page tells %s what is there", async (name) => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn("", name, PASSWORD);
  const failed: string[] = [];
  page.on("response", (response) => {
    if (response.status() >= 500) failed.push(`${response.status()} ${response.url()}`);
  });
  for (const path of PAGES) {
    await page.goto(path);
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    await page.waitForLoadState("networkidle");
    expect(await page.getByText("Something went wrong").count(), path).toBe(0);
    expect(await page.getByText("Loading").count(), path).toBe(0);
    // Whoever may not see a cluster learns nothing of it.
    if (name === "nina" && path.startsWith("/c/")) {
      expect(await page.getByText("shop-web").count(), path).toBe(0);
    }
  }
  expect(failed).toEqual([]);
  await visitor.leave();
});
