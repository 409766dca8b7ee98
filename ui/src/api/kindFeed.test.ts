// @vitest-environment jsdom
import { QueryClient } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { KindFeed, withChanges } from "./kindFeed.ts";
import type { KindList, KindObject } from "./kinds.ts";

const object = (id: string, version: string): KindObject => ({
  id,
  type: "pod",
  links: {},
  metadata: { name: id, uid: id, resourceVersion: version },
});
const list = (...data: KindObject[]): KindList => ({
  data,
  columns: [],
  count: data.length,
  revision: "1",
});
const KEY = ["kind-list", "c-1", "pods", "?page=1"];

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("a changed object takes the place of the old one, and nothing else moves", () => {
  const before = list(object("a", "1"), object("b", "1"));
  const after = withChanges(before, new Map([["b", object("b", "2")]]));
  expect(after.data.map(({ id, metadata }) => [id, metadata.resourceVersion])).toEqual([
    ["a", "1"],
    ["b", "2"],
  ]);
  expect(withChanges(before, new Map([["c", object("c", "1")]]))).toBe(before);
});

test("rows change at once, and a list is read again soon after objects came or went", async () => {
  const client = new QueryClient();
  client.setQueryData(KEY, list(object("a", "1")));
  const isStale = () => client.getQueryState(KEY)?.isInvalidated;
  const feed = new KindFeed(client, "c-1", "pods");
  feed.take({ name: "resource.change", resource: object("a", "2") });
  await vi.advanceTimersByTimeAsync(100);
  expect(client.getQueryData<KindList>(KEY)?.data[0]?.metadata.resourceVersion).toBe("2");
  await vi.advanceTimersByTimeAsync(2_000);
  expect(isStale()).toBe(false);
  feed.take({ name: "resource.remove", resource: object("a", "3") });
  await vi.advanceTimersByTimeAsync(2_000);
  expect(isStale()).toBe(true);
  feed.stop();
});

test("an order that may have changed is read again in the end", async () => {
  const client = new QueryClient();
  client.setQueryData(KEY, list(object("a", "1")));
  const feed = new KindFeed(client, "c-1", "pods");
  for (let second = 0; second < 10; second += 1) {
    feed.take({ name: "resource.change", resource: object("a", String(second)) });
    await vi.advanceTimersByTimeAsync(1_000);
  }
  expect(client.getQueryState(KEY)?.isInvalidated).toBe(true);
  feed.stop();
});
