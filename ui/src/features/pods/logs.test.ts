import { expect, test } from "vitest";
import { LogPlace, splitLine } from "./logs.ts";

test("a line is split into its time and its text", () => {
  expect(splitLine("2026-11-28T01:02:03.5Z ready, 2 of 2")).toEqual({
    at: "2026-11-28T01:02:03.5Z",
    text: "ready, 2 of 2",
  });
  expect(splitLine("2026-11-28T01:02:03+02:00 ")).toEqual({
    at: "2026-11-28T01:02:03+02:00",
    text: "",
  });
  expect(splitLine("no time")).toEqual({ at: "", text: "no time" });
});

test("a log that is read again shows no line twice and leaves none out", () => {
  const place = new LogPlace();
  const read = (...times: string[]) => {
    place.begin();
    return times.map((time) => place.isNew(`2026-11-28T01:02:${time}Z`));
  };
  expect(read("03.1", "03.12", "03.12")).toEqual([true, true, true]);
  // From the beginning of that second; one of the last time was not yet written then.
  expect(read("03.1", "03.12", "03.12", "03.12", "04")).toEqual([false, false, false, true, true]);
  expect(read("04", "04.000000001")).toEqual([false, true]);
});

test("lines without times are all new", () => {
  const place = new LogPlace();
  place.begin();
  expect([place.isNew(""), place.isNew("")]).toEqual([true, true]);
});
