import { expect, test } from "vitest";
import { monogram, nameProblem } from "./names.ts";

test("a mark has the first letters of two words, else two letters", () => {
  expect(monogram("prod-eu-1")).toBe("PE");
  expect(monogram("demo")).toBe("DE");
  expect(monogram("")).toBe("");
});

test("a name that the API would refuse gets a similar valid one", () => {
  expect(nameProblem("payments-eu", [])).toBeUndefined();
  expect(nameProblem("Payments_EU", [])?.suggestion).toBe("payments-eu");
  expect(nameProblem("-x-", [])?.suggestion).toBe("x");
  expect(nameProblem("???", [])?.suggestion).toBeUndefined();
  expect(nameProblem("a".repeat(64), [])?.text).toContain("63");
});

test("a taken name is refused and never suggested", () => {
  expect(nameProblem("north", ["north"])?.text).toContain("Another cluster");
  expect(nameProblem("North", ["north"])?.suggestion).toBeUndefined();
});
