import { expect, test } from "vitest";
import { ago, length, moment, point } from "./time.ts";

const now = new Date("2026-11-21T12:00:00Z");
const before = (seconds: number) => new Date(now.getTime() - seconds * 1000);

test("lengths have one unit that fits", () => {
  expect(length(8_000)).toBe("8 s");
  expect(length(4 * 60_000 + 59_000)).toBe("4 min");
  expect(length(47 * 3_600_000)).toBe("47 h");
  expect(length(48 * 3_600_000)).toBe("2 d");
});

test("what happened a moment ago, or by another clock in the future, is just now", () => {
  expect(ago(before(3), now)).toBe("just now");
  expect(ago(before(-30), now)).toBe("just now");
  expect(ago(before(360), now)).toBe("6 min ago");
});

test("a moment has its day unless that is today", () => {
  const now = new Date(2026, 2, 14, 12);
  expect(moment(new Date(2026, 2, 14, 8, 45, 2), now)).toBe("08:45:02");
  expect(moment(new Date(2026, 2, 13, 23, 59, 59), now)).toBe("13 Mar, 23:59:59");
});

test("a text that is not a time is not parsed", () => {
  expect(point("2026-11-21T12:00:00Z")).toEqual(now);
  for (const none of ["", null, undefined, "soon"]) expect(point(none)).toBeUndefined();
});
