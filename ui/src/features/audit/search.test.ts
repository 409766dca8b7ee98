import { expect, test } from "vitest";
import { auditQueryString, readAuditSearch } from "./search.ts";

test("an address gives the filters that it has and that are known", () => {
  const raw = { kind: "refused", user: 42, from: "203.0.113.9", page: 3 };
  expect(readAuditSearch(raw)).toEqual({ kind: "refused", user: "42", from: "203.0.113.9" });
  expect(readAuditSearch({ kind: "toString", user: "" })).toEqual({});
});

test("filters are those of the API", () => {
  expect(auditQueryString({})).toBe("");
  expect(auditQueryString({ kind: "failed-logins", user: "a&b", from: "::1" }, "c-1")).toBe(
    "event=login-refused&clusterId=c-1&user=a%26b&address=%3A%3A1",
  );
});
