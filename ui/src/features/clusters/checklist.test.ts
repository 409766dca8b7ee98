import { expect, test } from "vitest";
import type { RegistrationToken } from "../../api/types.ts";
import { checklist, summary } from "./checklist.ts";
import { but, cluster, condition, NOW, waiting } from "./examples.ts";

const token: RegistrationToken = {
  id: "c-1:default-token",
  type: "clusterRegistrationToken",
  expiresAt: "2026-11-22T08:56:00Z",
};
const fresh = () => waiting({ created: "2026-11-21T08:59:30Z" });
const states = (...of: Parameters<typeof checklist>) => checklist(...of).map(({ state }) => state);

test("steps complete one after the other", () => {
  expect(states(fresh(), token, NOW)).toEqual(["done", "now", "later", "later", "later", "later"]);
  const registered = but(fresh(), condition("Pending", "True"));
  expect(states(registered, token, NOW).slice(0, 4)).toEqual(["done", "done", "now", "later"]);
  const connected = but(registered, condition("Connected", "True"));
  expect(states(connected, token, NOW).slice(2, 5)).toEqual(["done", "now", "later"]);
  const steps = checklist(cluster(), token, NOW);
  expect(steps.every(({ state }) => state === "done")).toBe(true);
  expect(summary(steps)).toBe("All 6 done");
});

test("an expired command is reported with what helps", () => {
  const ended = { ...token, expiresAt: "2026-11-21T08:58:00Z" };
  const step = checklist(fresh(), ended, NOW)[1];
  expect(step).toMatchObject({ state: "wrong", tone: "err" });
  expect(step?.helps).toContain("make a new one");
  expect(summary(checklist(fresh(), ended, NOW))).toBe("1 of 6 done, one needs you");
});

test("an agent that does not register for long gets a hint, not an error", () => {
  const step = checklist(waiting({ created: "2026-11-21T08:50:00Z" }), token, NOW)[1];
  expect(step).toMatchObject({ state: "wrong", tone: "wait" });
  expect(step?.why).toContain("does not reach this server");
});

test("a refused agent shows the server's message and what helps", () => {
  const said = "an agent was refused: the token has expired";
  const refused = condition("Connected", "Unknown", "AgentRefused", said);
  const step = checklist(but(fresh(), refused), token, NOW)[1];
  expect(step).toMatchObject({ state: "wrong", tone: "err", detail: said });
  expect(step?.helps).toContain("new import command");
});

test("an agent of a cluster that is managed already is refused, and the notice says what helps", () => {
  const said = "another entry of this server already manages this cluster";
  const refused = condition("Connected", "Unknown", "AlreadyManaged", said);
  const step = checklist(but(fresh(), refused), token, NOW)[1];
  expect(step).toMatchObject({ state: "wrong", tone: "err", why: "", helps: "" });
  expect(step?.detail).toContain("managed already");
});

test("an unhealthy API shows the cause and the next step", () => {
  const sick = but(
    cluster({ state: "waiting", transitioning: "yes" }),
    condition("Ready", "False", "Unhealthy", "cluster API is not healthy: no leader"),
  );
  const step = checklist(sick, token, NOW)[3];
  expect(step).toMatchObject({ key: "healthy", state: "wrong", tone: "err" });
  expect(step?.detail).toContain("no leader");
  expect(step?.helps).toContain("kubectl get --raw");
});
