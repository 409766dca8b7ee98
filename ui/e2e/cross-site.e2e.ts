/** What pages of other applications do with a login in the same browser: nothing. */

import type { Page, Request } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Visitor, World } from "./world.ts";

const world = new World(["--nodes", "1"]);
const RIGHTS = { meta: { guarantee: "rights" } };
const BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/** A logged-in user, and the server. */
interface Victim {
  visitor: Visitor;
  origin: string;
}

beforeAll(() => world.start());
afterAll(() => world.end());

async function victim(): Promise<Victim> {
  const { port } = new URL(world.server.url());
  const origin = `https://drover.corp.example:${port}`;
  const visitor = await world.visitor();
  await visitor.signIn(origin);
  return { visitor, origin };
}

/**
 * A page of another application in the same browser. The test serves the page, but not the requests
 * that it sends.
 */
async function attacker(victim: Victim, origin: string): Promise<Page> {
  const { context } = victim.visitor;
  await context.route(`${origin}/**`, (route) =>
    route.fulfill({ contentType: "text/html", body: "<!doctype html><title>wiki</title>" }),
  );
  const page = await context.newPage();
  await page.goto(`${origin}/page`);
  expect(await page.evaluate(() => location.origin)).toBe(origin);
  return page;
}

/** Sends a write as browsers let any page send it, and returns what was sent. */
async function forge(page: Page, url: string, body: unknown): Promise<Record<string, string>> {
  const sent = page.waitForEvent("request", (request: Request) => request.url() === url);
  const answered = page.waitForEvent("response", (response) => response.url() === url);
  await page.evaluate(
    async ([url, body]) => {
      // A body without a type is sent without a preflight request.
      const blob = new Blob([body]);
      await fetch(url, { method: "POST", mode: "no-cors", credentials: "include", body: blob });
    },
    [url, JSON.stringify(body)] as const,
  );
  expect((await answered).status(), url).toBeGreaterThanOrEqual(400);
  return (await sent).allHeaders();
}

/** Opens a WebSocket and returns its outcome. */
function socket(page: Page, url: string): Promise<string> {
  return page.evaluate(
    (url) =>
      new Promise<string>((resolve) => {
        const socket = new WebSocket(url);
        socket.onopen = () => resolve("open");
        socket.onerror = () => resolve("refused");
      }),
    url,
  );
}

/** Sends a request like the victim's own page. */
function status({ visitor }: Victim, path: string): Promise<number> {
  return visitor.page.evaluate(async (path) => (await fetch(path)).status, path);
}

function binding(name: string) {
  const apiGroup = "rbac.authorization.k8s.io";
  return {
    apiVersion: `${apiGroup}/v1`,
    kind: "ClusterRoleBinding",
    metadata: { name },
    roleRef: { apiGroup, kind: "ClusterRole", name: "cluster-admin" },
    subjects: [{ apiGroup, kind: "User", name: "mallory" }],
  };
}

for (const [name, elsewhere, isSameSite] of [
  ["of a sibling host", () => "https://wiki.corp.example", true],
  ["of another port of the host", () => "https://drover.corp.example:9", true],
  ["of another site", () => "https://evil.test", false],
] as const) {
  test(`a page ${name} makes nobody an administrator`, RIGHTS, async () => {
    const attacked = await victim();
    const page = await attacker(attacked, elsewhere());
    for (const below of ["", "/k8s/clusters/local"]) {
      const path = `${below}${BINDINGS}`;
      const sent = await forge(page, `${attacked.origin}${path}`, binding("taken-over"));
      // The attack is a real one only where the browser sends the login along.
      expect(sent.cookie?.includes("R_SESS=") ?? false, path).toBe(isSameSite);
      expect(await status(attacked, `${path}/taken-over`), path).toBe(404);
    }
    await attacked.visitor.leave();
  });

  test(`a page ${name} watches no Secrets`, RIGHTS, async () => {
    const attacked = await victim();
    const page = await attacker(attacked, elsewhere());
    const at = attacked.origin.replace("https:", "wss:");
    for (const path of ["/api/v1/secrets", "/k8s/clusters/local/api/v1/secrets"]) {
      expect(await socket(page, `${at}${path}?watch=true`), path).toBe("refused");
    }
    expect(await socket(page, `${at}/v3/subscribe`)).toBe("refused");
    // The user's own page may do it.
    const own = attacked.visitor.page;
    expect(await socket(own, `${at}/v3/subscribe`)).toBe("open");
    await attacked.visitor.leave();
  });
}

test("a page of a sibling host that sets a cookie of its own makes no user", RIGHTS, async () => {
  const attacked = await victim();
  const page = await attacker(attacked, "https://wiki.corp.example");
  await page.evaluate(() => {
    // biome-ignore lint/suspicious/noDocumentCookie: this is how the attack works
    document.cookie = "CSRF=evil; domain=corp.example; path=/v3; secure";
  });
  const user = { username: "backdoor", password: "a-long-password" };
  const sent = await forge(page, `${attacked.origin}/v3/users?CSRF=evil`, user);
  expect(sent.cookie).toContain("CSRF=evil");
  const users = await attacked.visitor.page.evaluate(async () => (await fetch("/v3/users")).text());
  expect(users).not.toContain("backdoor");
  // And the user's own pages still work.
  const made = await attacked.visitor.page.evaluate(async () => {
    const pairs = document.cookie.split("; ").map((pair) => pair.split("="));
    const csrf = pairs.find(([name]) => name === "__Host-CSRF")?.[1] ?? "";
    const headers = { "content-type": "application/json", "x-api-csrf": csrf };
    const body = JSON.stringify({ name: "theme", value: "dark" });
    return (await fetch("/v3/preferences", { method: "POST", headers, body })).status;
  });
  expect(made).toBe(201);
  await attacked.visitor.leave();
});
