/**
 * A role of Drover that a cluster rejects: the pages show the reason, the cluster's own words and
 * what helps, until the cluster accepts the role.
 */

import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "./programs.ts";
import { World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "2"]);
/** The user that the agent is in its cluster. */
const AGENT = "system:serviceaccount:cattle-system:cattle";
const REFUSAL = "roles are frozen here";

beforeAll(async () => {
  await world.start();
  const visitor = await world.visitor();
  await visitor.signIn();
  await world.run(await visitor.importCommand("vault"));
  await visitor.row("vault").getByText("Active").waitFor();
  await visitor.leave();
});
afterAll(() => world.end());

/** Makes the cluster reject the roles that the agent writes, like the policy of an organisation. */
async function rejectRoles(): Promise<void> {
  const policy = {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingAdmissionPolicy",
    metadata: { name: "frozen" },
    spec: {
      matchConstraints: {
        resourceRules: [
          {
            apiGroups: ["rbac.authorization.k8s.io"],
            apiVersions: ["v1"],
            operations: ["CREATE", "UPDATE"],
            resources: ["clusterroles"],
          },
        ],
      },
      matchConditions: [{ name: "agent", expression: `request.userInfo.username == "${AGENT}"` }],
      validations: [{ expression: "false", message: REFUSAL }],
    },
  };
  const binding = {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingAdmissionPolicyBinding",
    metadata: { name: "frozen" },
    spec: { policyName: "frozen", validationActions: ["Deny"] },
  };
  for (const object of [policy, binding]) {
    await world.run(`kubectl apply -f - <<'END'\n${JSON.stringify(object)}\nEND`);
  }
  // A policy takes effect some time after it was created.
  const probe = `kubectl create clusterrole probe --verb=get --resource=pods --as ${AGENT} --dry-run=server`;
  await eventually("the policy takes effect", () =>
    expect(world.run(probe)).rejects.toThrow(REFUSAL),
  );
}

test("a role that the cluster rejects is shown with the cluster's words and what helps, until it is accepted", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await page.goto("/c/vault/conditions");
  const line = page.getByRole("listitem").filter({ hasText: "RolesApplied" });
  await line.getByText("Roles applied", { exact: true }).waitFor();
  await rejectRoles();
  // The first member of the cluster needs a role there.
  const user = { username: "mia", name: "Mia", password: "password-of-a-member" };
  await visitor.makeUser(user, { cluster: "vault", role: "cluster-member" });

  await line.getByText("Roles not applied", { exact: true }).waitFor();
  await line.getByText("Error", { exact: true }).waitFor();
  await line
    .getByText(/^Drover says: .*drover:cluster:cluster-member.*roles are frozen here/)
    .waitFor();
  await line.getByText("What helps: See what the cluster rejects").waitFor();
  await visitor.expectAccessible("the conditions of a cluster that rejects a role");

  await page.goto("/clusters");
  const reason = page.getByRole("row").filter({ hasText: REFUSAL });
  expect(await visitor.row("vault").getByText("Active").count()).toBe(0);
  await reason.getByRole("link", { name: "What to check" }).click();
  await page.getByRole("heading", { name: "Conditions of vault", level: 1 }).waitFor();

  await world.run("kubectl delete validatingadmissionpolicybinding frozen");
  await line.getByText("Roles applied", { exact: true }).waitFor();
  await page.getByRole("link", { name: "All clusters" }).first().click();
  await visitor.row("vault").getByText("Active").waitFor();
  visitor.expectQuiet();
  await visitor.leave();
});
