import { expect, test } from "vitest";
import { importDenial, nodeDenial, removalDenial } from "./rights.ts";

test("a denial names the missing right and who can grant it", () => {
  expect(importDenial([])).toBe(
    "You may not import clusters: that needs the right to create clusters. Ask an administrator.",
  );
  expect(importDenial(["Ann", "Ben"])).toMatch(/Ask Ann or Ben\.$/);
  expect(removalDenial("north", ["Ann", "Ben"])).toBe(
    "You may not remove north: that needs the role Cluster Owner. Ask Ann, Ben or an administrator.",
  );
  expect(nodeDenial("north", ["Ann"])).toBe(
    "You may not change nodes of north: that needs the role Cluster Owner. Ask Ann or an administrator.",
  );
  expect(removalDenial("north", [])).toMatch(/Ask an administrator\.$/);
});
