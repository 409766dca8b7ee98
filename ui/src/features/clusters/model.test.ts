import { expect, test } from "vitest";
import type { Cluster } from "../../api/types.ts";
import { explainAll } from "./conditions.ts";
import { but, cluster, condition, lost, NOW, waiting } from "./examples.ts";
import {
  failureOf,
  isPast,
  isProduction,
  isSilent,
  lastHeard,
  matches,
  pastSince,
  problems,
  reasonOf,
  removalOptions,
  silence,
  sorted,
  stateWord,
  tally,
  toneOf,
  usage,
} from "./model.ts";

test("an active cluster needs no reason, every other state has one", () => {
  expect(reasonOf(cluster(), NOW)).toBeUndefined();
  const states: Cluster[] = [
    waiting(),
    lost(),
    cluster({ state: "provisioning", transitioning: "yes" }),
    cluster({ state: "removing", transitioning: "yes" }),
    cluster({ state: "a-word-of-tomorrow" }),
    but(
      cluster({ state: "unavailable" }),
      condition("Ready", "False", "Unhealthy", "etcd is slow"),
    ),
  ];
  for (const one of states) expect(reasonOf(one, NOW)?.text, one.state).toMatch(/^[A-Z].*\.$/s);
});

test("the reason explains the state and has a next step", () => {
  expect(reasonOf(waiting(), NOW)).toEqual({
    text: "Created 4 min ago; nobody has run the import command so far.",
    next: "import",
    label: "Show the command",
  });
  expect(reasonOf(lost(), NOW)).toMatchObject({ next: "conditions", label: "What to check" });
  expect(reasonOf(lost(), NOW)?.text).toMatch(/^Agent silent since \d\d:39:00\.$/);
  const unwell = but(
    cluster({ state: "unavailable", transitioning: "error" }),
    condition("Ready", "False", "Unhealthy", "cluster API is not healthy: etcd is slow"),
  );
  expect(reasonOf(unwell, NOW)?.text).toBe("Cluster API is not healthy: etcd is slow.");
});

test("a refused agent is reported before conditions that wait for it", () => {
  const said = "an agent was refused: another cluster's key";
  const refused = but(waiting(), condition("Connected", "Unknown", "AgentRefused", said));
  expect(toneOf(refused)).toBe("err");
  expect(reasonOf(refused, NOW)).toMatchObject({
    text: "An agent was refused: another cluster's key.",
    label: "What to check",
  });
});

test("a removal that waits for an unreachable cluster offers to continue without it", () => {
  const stuck = but(
    cluster({ state: "removing" }),
    condition("Removed", "Unknown", "DownstreamUnreachable"),
  );
  expect(reasonOf(stuck, NOW)?.next).toBe("force-removal");
  const going = but(cluster({ state: "removing" }), condition("Removed", "Unknown", "Cleanup"));
  expect(reasonOf(going, NOW)?.next).toBeUndefined();
});

test("a cluster that does not respond is waited for, forced or detached, and nothing is chosen", () => {
  const words = (one: Cluster) => removalOptions(one).map(({ word }) => word);
  expect(words(cluster())).toEqual(["Remove", "Detach"]);
  expect(isSilent(cluster())).toBe(false);
  expect(words(lost())).toEqual(["Wait", "Force", "Detach"]);
  expect(isSilent(lost())).toBe(true);
  expect(silence(lost())).toMatch(/^since \d\d:39:00: cluster agent is not connected$/);
  const forces = removalOptions(lost()).map(({ force, detach }) => [force, detach]);
  expect(forces).toEqual([
    [false, false],
    [true, false],
    [true, true],
  ]);
  // Nothing was created in a cluster without an agent so far.
  expect(words(waiting())).toEqual(["Remove", "Detach"]);
  expect(words({ ...lost(), state: "removing" })).toEqual(["Force"]);
});

test("an entry of a cluster that another entry manages is an error and shows what helps", () => {
  const taken = but(
    waiting(),
    condition("Connected", "Unknown", "AlreadyManaged", "another entry manages this cluster"),
  );
  expect(toneOf(taken)).toBe("err");
  const explained = explainAll(taken).find(({ type }) => type === "Connected");
  expect(explained).toMatchObject({
    title: "Managed already",
    next: "Choose one of the ways above.",
  });
});

test("each state has its tone, and failures in any state are errors", () => {
  expect(toneOf(cluster())).toBe("ok");
  expect(toneOf(waiting())).toBe("wait");
  expect(toneOf(lost())).toBe("off");
  expect(toneOf(cluster({ state: "updating", transitioning: "error" }))).toBe("err");
  const pressed = but(cluster(), condition("NoDiskPressure", "False", "NodesHaveDiskPressure"));
  expect(toneOf(pressed)).toBe("warn");
  expect(stateWord(pressed)).toBe("Active, 1 warning");
});

test("settings that nothing acts on are a warning that names them, not a failure", () => {
  const said = "This version does not act on them: enableNetworkPolicy.";
  const idle = but(cluster(), condition("Effective", "False", "NotImplemented", said));
  expect(toneOf(idle)).toBe("warn");
  expect(stateWord(idle)).toBe("Active, 1 warning");
  expect(reasonOf(idle, NOW)?.text).toBe(said);
});

test("a refused agent was never connected, so that nothing waits for it", () => {
  const taken = but(waiting(), condition("Connected", "Unknown", "AlreadyManaged"));
  expect(lastHeard(taken)).toBeUndefined();
  expect(isSilent(taken)).toBe(false);
});

test("what fails is named with how long it has failed, not the condition that should hold", () => {
  expect(failureOf(lost(), NOW)).toBe("Agent silent for 21 min");
  const unwell = but(
    cluster({ state: "unavailable" }),
    condition("Ready", "False", "Unhealthy", "etcd is slow"),
  );
  expect(failureOf(unwell, NOW)).toBe("API not healthy for 21 min");
  expect(failureOf(waiting(), NOW)).toMatch(/^No agent so far/);
  expect(failureOf(cluster(), NOW)).toBeUndefined();
  // No title of a failing condition reads like one of a true condition.
  for (const one of explainAll(lost()).filter(({ holds }) => !holds)) {
    expect(["Tunnel open", "API healthy"]).not.toContain(one.title);
  }
});

test("only conditions that Drover knows by itself stay valid while the agent is silent", () => {
  const observed = explainAll(but(lost(), condition("NoDiskPressure", "True")))
    .filter((one) => one.holds && one.observed)
    .map(({ type }) => type);
  expect(observed).toEqual(["AgentDeployed", "Waiting", "Updated", "NoDiskPressure"]);
});

test("figures are outdated only if the cluster cannot be queried", () => {
  expect(isPast(lost())).toBe(true);
  expect(pastSince(lost())).toEqual(new Date("2026-11-21T08:39:00Z"));
  expect(isPast(lost({ state: "removing" }))).toBe(true);
  expect(isPast(cluster({ state: "removing" }))).toBe(false);
  expect(isPast(waiting())).toBe(false);
  expect(isPast(cluster())).toBe(false);
  expect(lastHeard(cluster())).toBe("live");
  expect(lastHeard(waiting())).toBeUndefined();
  expect(lastHeard(lost())).toEqual(new Date("2026-11-21T08:39:00Z"));
});

test("the worst comes first, and the order is stable", () => {
  const fleet = [
    cluster({ id: "1", name: "b-10" }),
    cluster({ id: "2", name: "b-9" }),
    waiting({ id: "3", name: "c" }),
    lost({ id: "4", name: "z" }),
  ];
  expect(sorted(fleet, "state", false).map(({ name }) => name)).toEqual(["z", "c", "b-9", "b-10"]);
  expect(sorted(fleet, "name", true).map(({ name }) => name)).toEqual(["z", "c", "b-10", "b-9"]);
  expect(tally(fleet)).toEqual([
    ["off", 1],
    ["wait", 1],
    ["ok", 2],
  ]);
});

test("the filter finds names, ids, versions and labels of users, by every word", () => {
  const one = cluster({
    labels: { region: "eu-west-1", "cattle.io/creator": "norman" },
    version: { gitVersion: "v1.36.3" },
  });
  for (const text of ["nor", "c-1", "1.36", "eu-west NORTH"]) expect(matches(one, text)).toBe(true);
  for (const text of ["norman", "north south"]) expect(matches(one, text)).toBe(false);
});

test("production clusters are those with such a label", () => {
  expect(isProduction(cluster({ labels: { environment: "production" } }))).toBe(true);
  expect(isProduction(cluster({ labels: { "acme.example/env": "prod" } }))).toBe(true);
  expect(isProduction(cluster({ labels: { team: "production" } }))).toBe(false);
  expect(isProduction(cluster())).toBe(false);
});

test("a resource without requests is 0, and an unknown one is undefined", () => {
  const known = cluster({ allocatable: { cpu: "8" }, requested: { pods: "3" } });
  expect(usage(known, "cpu")).toEqual({ taken: 0, whole: 8, percent: 0 });
  expect(usage(cluster(), "cpu").percent).toBeUndefined();
});

test("an unknown condition is shown with the server's message", () => {
  const odd = but(cluster(), condition("EtcdBackedUp", "False", "NoSpace", "the bucket is full"));
  expect(problems(odd)).toMatchObject([
    {
      title: "Etcd backed up does not hold",
      tone: "err",
      reason: "NoSpace",
      said: "the bucket is full",
    },
  ]);
});

test("every condition of a cluster has a meaning, and a failing one shows what helps", () => {
  for (const one of explainAll(waiting())) {
    expect(one.meaning, one.type).toMatch(/\.$/);
    if (!one.holds) expect(one.next, one.type).not.toBe("");
  }
});
