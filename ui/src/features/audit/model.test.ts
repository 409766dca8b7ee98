import { expect, test } from "vitest";
import type { AuditEvent } from "../../api/types.ts";
import {
  addressWord,
  eventReason,
  eventWord,
  requestWord,
  resultTone,
  resultWord,
  userWord,
} from "./model.ts";

function event(change: Partial<AuditEvent>): AuditEvent {
  return { id: "1-0", type: "auditEvent", event: "proxied", ...change };
}

test("an event shows who did what from where, and the result", () => {
  const proxied = event({
    verb: "list",
    requestURI: "/k8s/clusters/c-1/api/v1/pods?",
    user: { username: "u-1", extra: { username: ["ann"] } },
    sourceIPs: ["203.0.113.9", "10.0.0.1"],
    responseStatus: { code: 200 },
  });
  const words = [eventWord, userWord, addressWord, requestWord, resultWord, resultTone];
  expect(words.map((word) => word(proxied))).toEqual([
    "Cluster request",
    "ann",
    "203.0.113.9",
    "list /k8s/clusters/c-1/api/v1/pods",
    "200",
    "done",
  ]);
  expect(userWord(event({ user: { username: "system:apiserver" } }))).toBe("system:apiserver");
  expect(userWord(event({ user: {}, annotations: { "drover.io/login-name": "bob" } }))).toBe("bob");
  expect(words.map((word) => word(event({ event: "new-kind" })))).toEqual([
    "new-kind",
    "—",
    "—",
    "—",
    "—",
    "done",
  ]);
});

test("a refusal stands out and has its reason, and so do refusals that were only counted", () => {
  expect(
    [401, 403, 404, 500, 503].map((code) => resultTone(event({ responseStatus: { code } }))),
  ).toEqual(["warn", "warn", "warn", "err", "err"]);
  expect(eventReason(event({ annotations: { "drover.io/reason": "the token expired" } }))).toBe(
    "the token expired",
  );
  const suppressed = event({
    event: "suppressed",
    annotations: {
      "drover.io/suppressed": "1200",
      "drover.io/suppressed-events": "credential-refused=1000,login-refused=200",
    },
  });
  expect(resultTone(suppressed)).toBe("warn");
  expect(eventReason(suppressed)).toBe(
    "1,200 events of callers without credentials: credential-refused=1000, login-refused=200",
  );
  expect(eventReason(event({}))).toBeUndefined();
});
