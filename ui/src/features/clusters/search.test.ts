import { expect, test } from "vitest";
import { readSearch } from "./search.ts";

test("valid parts of an address are read, and others ignored", () => {
  const search = { q: "eu", state: "wait", sort: "nodes", descending: true, waiting: true };
  expect(readSearch(search)).toEqual(search);
  expect(readSearch({ import: "c-1" })).toEqual({ import: "c-1" });
  expect(
    readSearch({ q: 5, state: "fine", sort: "colour", descending: "yes", waiting: 1, x: 1 }),
  ).toEqual({});
});
