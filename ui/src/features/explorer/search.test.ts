import { expect, test } from "vitest";
import { belowKind, isFiltered, readKindSearch } from "./search.ts";

test("an address has what is known of a list, and nothing else", () => {
  const raw = { q: 42, namespace: "web", sort: "metadata.name", descending: true, page: 3, x: 1 };
  const search = { q: "42", namespace: "web", sort: "metadata.name", descending: true, page: 3 };
  expect(readKindSearch(raw)).toEqual(search);
  expect(readKindSearch({ q: "", page: 1, descending: "yes", sort: 7 })).toEqual({});
  expect(isFiltered({ sort: "metadata.name" })).toBe(false);
  expect(isFiltered({ q: "0" })).toBe(true);
});

test("a list is requested with its filters, order and page", () => {
  expect(belowKind({})).toBe("?pagesize=100&page=1&exclude=metadata.managedFields");
  const query = new URLSearchParams(
    belowKind({ q: "a,b='c", namespace: "w/b", sort: "metadata.name", descending: true, page: 2 })
      .split("?")
      .at(1),
  );
  expect(query.get("filter")).toBe("metadata.name=ab=c");
  expect(query.get("sort")).toBe("-metadata.name");
  expect(query.get("page")).toBe("2");
  expect(belowKind({ namespace: "w/b" })).toMatch(/^\/w%2Fb\?/);
});
