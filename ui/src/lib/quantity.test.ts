import { expect, test } from "vitest";
import { bytes, cores, parse, percent, percentText } from "./quantity.ts";

test("quantities of every suffix become numbers, and what is none becomes nothing", () => {
  expect(parse("250m")).toBeCloseTo(0.25);
  expect(parse("16Gi")).toBe(16 * 2 ** 30);
  expect(parse("1500")).toBe(1500);
  expect(parse("1e3")).toBe(1000);
  expect(parse("2M")).toBe(2_000_000);
  for (const none of ["", undefined, null, "many", "5 Gi", "3Zi"])
    expect(parse(none)).toBeUndefined();
});

test("numbers read as people say them", () => {
  expect(cores(1)).toBe("1 core");
  expect(cores(0.125)).toBe("0.13 cores");
  expect(cores(4118.4)).toBe("4,118 cores");
  expect(bytes(17.9 * 2 ** 40)).toBe("17.9 TiB");
  expect(bytes(512)).toBe("512 B");
});

test("a little is never nothing, and nearly all never all", () => {
  expect(percentText(percent(1, 1500) ?? 0)).toBe("<1%");
  expect(percentText(99.9)).toBe("99%");
  expect(percentText(100)).toBe("100%");
  expect(percentText(0)).toBe("0%");
  expect(percent(1, 0)).toBeUndefined();
});
