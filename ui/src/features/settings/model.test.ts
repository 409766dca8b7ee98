import { expect, test } from "vitest";
import { currentValue, fixedBecause } from "./model.ts";

const setting = { id: "password-min-length", type: "setting", default: "12" };

test("the value that holds is the default unless there is one", () => {
  expect(currentValue(setting)).toBe("12");
  expect(currentValue({ ...setting, value: "16" })).toBe("16");
});

test("what the environment says is changed there", () => {
  expect(fixedBecause(setting)).toBeUndefined();
  expect(fixedBecause({ ...setting, source: "env" })).toMatch(/environment/);
});
