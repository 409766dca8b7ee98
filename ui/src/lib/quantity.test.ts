import { expect, test } from "vitest";
import { bytes, cores, parse, percent, percentText } from "./quantity.ts";

test("quantities of every suffix are parsed, and invalid text gives nothing", () => {
  expect(parse("250m")).toBeCloseTo(0.25);
  expect(parse("16Gi")).toBe(16 * 2 ** 30);
  expect(parse("1500")).toBe(1500);
  expect(parse("1e3")).toBe(1000);
  expect(parse("2M")).toBe(2_000_000);
  for (const none of ["", undefined, null, "many", "5 Gi", "3Zi"])
    expect(parse(none)).toBeUndefined();
});

test("numbers are formatted with separators and units", () => {
  expect(cores(1)).toBe("1 core");
  expect(cores(0.125)).toBe("0.13 cores");
  expect(cores(4118.4)).toBe("4,118 cores");
  expect(bytes(17.9 * 2 ** 40)).toBe("17.9 TiB");
  expect(bytes(512)).toBe("512 B");
});

test("a small share is never 0%, and one below the whole never 100%", () => {
  expect(percentText(percent(1, 1500) ?? 0)).toBe("<1%");
  expect(percentText(99.9)).toBe("99%");
  expect(percentText(100)).toBe("100%");
  expect(percentText(0)).toBe("0%");
  expect(percent(1, 0)).toBeUndefined();
});
