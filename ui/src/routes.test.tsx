// @vitest-environment jsdom
import { QueryClient } from "@tanstack/react-query";
import { expect, test } from "vitest";
import { paths } from "./paths.ts";
import { makeRouter } from "./routes.tsx";

test("every address of the interface is one of its routes", () => {
  const router = makeRouter(new QueryClient());
  const made = Object.entries({
    login: paths.login("/c/north"),
    clusters: paths.clusters({ q: "eu", import: "c-1" }),
    cluster: paths.cluster("north"),
    nodes: paths.nodes("north"),
    conditions: paths.conditions("north"),
    password: paths.password(),
    audit: paths.audit({ kind: "refused", user: "ann" }),
    clusterAudit: paths.clusterAudit("north", { from: "203.0.113.9" }),
    kinds: paths.kinds("north"),
    kind: paths.kind("north", "apps.deployments", { q: "web", page: 2 }),
    object: paths.kindObject("north", "pods", "web/a", { view: "logs", container: "main" }),
    projects: paths.projects("north"),
    project: paths.project("north", "p-1"),
    members: paths.members("north"),
    access: paths.access("north"),
    users: paths.users(),
    roles: paths.roles(),
    groups: paths.groups(),
    providers: paths.providers(),
    drivers: paths.drivers(),
    settings: paths.settings(),
    tokens: paths.tokens(),
  }).map(([name, link]) => {
    const { href, pathname } = router.buildLocation(
      link as Parameters<typeof router.buildLocation>[0],
    );
    const [, , leaf] = router.getMatchedRoutes(pathname);
    return `${name}: ${href} -> ${leaf?.fullPath}`;
  });
  expect(made).toMatchInlineSnapshot(`
    [
      "login: /login?to=%2Fc%2Fnorth -> /login",
      "clusters: /clusters?q=eu&import=c-1 -> /clusters",
      "cluster: /c/north -> /c/$cluster/",
      "nodes: /c/north/nodes -> /c/$cluster/nodes",
      "conditions: /c/north/conditions -> /c/$cluster/conditions",
      "password: /password -> /password",
      "audit: /audit?kind=refused&user=ann -> /audit",
      "clusterAudit: /c/north/audit?from=203.0.113.9 -> /c/$cluster/audit",
      "kinds: /c/north/kinds -> /c/$cluster/kinds",
      "kind: /c/north/kinds/apps.deployments?q=web&page=2 -> /c/$cluster/kinds/$type",
      "object: /c/north/objects/pods/web/a?view=logs&container=main -> /c/$cluster/objects/$type/$",
      "projects: /c/north/projects -> /c/$cluster/projects",
      "project: /c/north/projects/p-1 -> /c/$cluster/projects/$project",
      "members: /c/north/members -> /c/$cluster/members",
      "access: /c/north/access -> /c/$cluster/access",
      "users: /users -> /users",
      "roles: /users/roles -> /users/roles",
      "groups: /users/groups -> /users/groups",
      "providers: /providers -> /providers",
      "drivers: /drivers -> /drivers",
      "settings: /settings -> /settings",
      "tokens: /tokens -> /tokens",
    ]
  `);
});

test("an address without a page is not found inside the frame that needs a login", () => {
  const router = makeRouter(new QueryClient());
  for (const path of ["/nosuch", "/nosuch/deeper", "/c/north/nosuch"]) {
    const [matched, , leaf] = router.getMatchedRoutes(path);
    expect(leaf?.fullPath, path).toBe("/$");
    expect(matched.map(({ id }) => id)).toContain("/signed-in");
  }
});
