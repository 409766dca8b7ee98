// @vitest-environment jsdom
import { QueryClient } from "@tanstack/react-query";
import { expect, test } from "vitest";
import { applied, feedOf } from "./feed.ts";
import { type ResourceEvent, readFrame } from "./live.ts";

const node = (id: string, clusterId: string, name = id) => ({ id, type: "node", clusterId, name });
const event = (
  name: ResourceEvent["name"],
  resource: ResourceEvent["resource"],
): ResourceEvent => ({
  name,
  resource,
});

test("frames of changes are parsed, pings and invalid frames are ignored", () => {
  const data = { id: "c-1", type: "cluster" };
  expect(readFrame(JSON.stringify({ name: "resource.change", data }))?.resource.id).toBe("c-1");
  for (const frame of [
    JSON.stringify({ name: "ping", data: {} }),
    JSON.stringify({ name: "resource.change", data: { id: 1 } }),
    JSON.stringify({ name: "resource.change" }),
    "not json",
    new ArrayBuffer(3),
  ]) {
    expect(readFrame(frame)).toBeUndefined();
  }
});

test("a change replaces or adds, a removal removes, events of other lists leave the list unchanged", () => {
  const key = ["list", "node", "c-1"] as const;
  const list = [node("c-1:a", "c-1"), node("c-1:b", "c-1")];
  const events = [
    event("resource.change", node("c-1:a", "c-1", "renamed")),
    event("resource.change", node("c-1:c", "c-1")),
    event("resource.change", node("c-2:d", "c-2")),
    // An object that the caller may no longer see is reported by id and type alone.
    event("resource.remove", { id: "c-1:b", type: "node" }),
  ];
  const names = applied(key, list, events).map(({ name }) => name);
  expect(names).toEqual(["renamed", "c-1:c"]);
  const foreign = [event("resource.change", { id: "c-1", type: "cluster" })];
  expect(applied(key, list, foreign)).toBe(list);
});

test("a pending response does not undo events that arrived meanwhile", async () => {
  const feed = feedOf(new QueryClient());
  const key = ["list", "node", "c-1"] as const;
  const read = feed.read(key, async () => {
    feed.take(event("resource.remove", { id: "c-1:a", type: "node" }));
    return [node("c-1:a", "c-1"), node("c-1:b", "c-1")];
  });
  expect((await read).map(({ id }) => id)).toEqual(["c-1:b"]);
});

test("events come into every list of their type that has been read", () => {
  const client = new QueryClient();
  const feed = feedOf(client);
  client.setQueryData(["list", "node", "c-1"], [node("c-1:a", "c-1")]);
  feed.take(event("resource.change", node("c-1:b", "c-1")));
  feed.take(event("resource.change", node("c-2:b", "c-2")));
  feed.flush();
  expect(client.getQueryData(["list", "node", "c-1"])).toHaveLength(2);
  expect(client.getQueryData(["list", "node", "c-2"])).toBeUndefined();
});
