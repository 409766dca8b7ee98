import { expect, test } from "vitest";
import { runs } from "./Chart.tsx";

test("a time without points is a gap", () => {
  const point = (at: number) => ({ at, value: 1, whole: 2 });
  const parts = runs([0, 30, 60, 200, 230].map(point), 75);
  expect(parts.map((part) => part.map(({ at }) => at))).toEqual([
    [0, 30, 60],
    [200, 230],
  ]);
  expect(runs([], 75)).toEqual([]);
});
