// @vitest-environment jsdom
import { renderHook } from "@testing-library/react";
import { expect, test } from "vitest";
import { cancelOperation, forEach, forgetOperation, operate, useOperations } from "./operations.ts";

const newest = () => renderHook(() => useOperations()).result.current.at(-1);

test("an operation has a line per step, and says that a step failed", async () => {
  const ended = await operate("Deleting", 2, async ({ step, failure }) => {
    step("Deleted a");
    failure("b: no");
  });
  expect(ended).toBe("failed");
  const operation = newest();
  expect(operation).toMatchObject({ title: "Deleting", done: 2, total: 2, state: "failed" });
  expect(operation?.lines.map(({ text }) => text)).toEqual(["Deleted a", "b: no"]);
  forgetOperation(operation?.id ?? 0);
  expect(newest()).toBeUndefined();
});

test("an operation whose work stops with an error has failed, and says why", async () => {
  const ended = await operate("Reading", 1, () => Promise.reject(new Error("no such thing")));
  expect(ended).toBe("failed");
  expect(newest()?.lines.map(({ text }) => text)).toEqual(["no such thing"]);
});

test("a cancelled operation begins no further step", async () => {
  const done: number[] = [];
  const ended = await operate("Counting", 10, ({ signal, step }) =>
    forEach([1, 2, 3, 4, 5], 2, signal, async (number) => {
      done.push(number);
      step(String(number));
      if (number === 2) cancelOperation(newest()?.id ?? 0);
      await Promise.resolve();
    }),
  );
  expect(ended).toBe("cancelled");
  expect(done).toEqual([1, 2]);
});
