import { expect, test } from "vitest";
import type { ApiToken } from "../../api/tokens.ts";
import { inOrder, scopeText, tokenWord } from "./model.ts";

const token = (id: string, more: Partial<ApiToken> = {}): ApiToken => ({
  id,
  type: "token",
  ...more,
});

test("tokens are in the order in which people look for them", () => {
  const tokens = [
    token("old", { created: "2026-01-01T00:00:00Z" }),
    token("new", { created: "2026-02-01T00:00:00Z", expired: true }),
    token("mine", { created: "2025-01-01T00:00:00Z", current: true }),
  ];
  expect(inOrder(tokens).map(({ id }) => id)).toEqual(["mine", "new", "old"]);
  expect(inOrder(tokens).map(tokenWord)).toEqual(["This browser", "Expired", "Valid"]);
});

test("a token says what it is for", () => {
  const clusters = [{ id: "c-1", type: "cluster", name: "orchard" }];
  expect(scopeText(token("a"), clusters)).toBe("everything you may do");
  expect(scopeText(token("a", { clusterId: "c-1" }), clusters)).toBe("cluster orchard");
  const scoped = token("a", { clusterId: "c-2", projectId: "c-2:p-1" });
  expect(scopeText(scoped, clusters)).toBe("project p-1 of c-2");
});
