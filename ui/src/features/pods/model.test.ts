import { expect, test } from "vitest";
import { containersOf } from "./model.ts";

const spec = {
  containers: [{ name: "web", image: "web:1", ports: [{ containerPort: 80, name: "http" }] }],
  initContainers: [{ name: "migrate", image: "tool:1" }],
};

test("a container is explained by its state and its last run", () => {
  const [web, migrate] = containersOf({
    spec,
    status: {
      containerStatuses: [
        {
          name: "web",
          ready: false,
          restartCount: 4,
          state: { waiting: { reason: "CrashLoopBackOff", message: "back-off 40s" } },
          lastState: { terminated: { exitCode: 137, reason: "OOMKilled" } },
        },
      ],
      initContainerStatuses: [
        {
          name: "migrate",
          ready: true,
          restartCount: 0,
          state: { terminated: { exitCode: 0, reason: "Completed", finishedAt: "2026-01-01" } },
        },
      ],
    },
  });
  expect(web).toMatchObject({
    role: "main",
    tone: "err",
    word: "CrashLoopBackOff",
    reason: "back-off 40s Its last run ended with 137 (OOMKilled).",
    restarts: 4,
    ports: ["80/TCP http"],
    isRunning: false,
  });
  expect(migrate).toMatchObject({ role: "init", tone: "done", word: "Completed" });
});

test("a container without a status waits", () => {
  expect(containersOf({ spec })[0]).toMatchObject({ tone: "wait", word: "Waiting", restarts: 0 });
});

test("a running container that is not ready is said to be so", () => {
  const status = { name: "web", ready: false, restartCount: 0, state: { running: {} } };
  const [web] = containersOf({ spec, status: { containerStatuses: [status] } });
  expect(web).toMatchObject({ tone: "run", word: "Not ready", isRunning: true });
});
