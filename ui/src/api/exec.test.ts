import { expect, test } from "vitest";
import { failureOf } from "./exec.ts";

test("the end of a program says why it failed", () => {
  expect(failureOf('{"metadata":{},"status":"Success"}')).toBeUndefined();
  const failed = { status: "Failure", reason: "NonZeroExitCode", message: "exit code 137" };
  expect(failureOf(JSON.stringify(failed))).toBe("exit code 137");
  expect(failureOf("no JSON")).toBe("no JSON");
});
