import { expect, test } from "vitest";
import { ansiParts, plainText } from "./ansi.ts";

test("colours of a line are those of terminals", () => {
  const line = "\u001b[32mINFO\u001b[0m started \u001b[1;91mbadly\u001b[22;39m, it seems";
  expect(ansiParts(line)).toEqual([
    { text: "INFO", colour: 2, bold: false },
    { text: " started ", colour: undefined, bold: false },
    { text: "badly", colour: 1, bold: true },
    { text: ", it seems", colour: undefined, bold: false },
  ]);
});

test("what would move the cursor, set a title or make a link is removed", () => {
  for (const hostile of [
    "\u001b[2J\u001b[Hplain",
    "\u001b]0;title\u0007plain",
    "\u001b]8;;https://example.com\u001b\\plain\u001b]8;;\u001b\\",
    "\u001bP1$r0m\u001b\\plain",
    "\u001b[?1049hplain\u001bc",
    "pla\u0008\u0000in\r",
    "\u001b[38;2;1;2;3;48;5;7mplain",
  ]) {
    expect(plainText(hostile), JSON.stringify(hostile)).toBe("plain");
  }
});

test("a sequence without an end hides nothing", () => {
  expect(plainText("\u001b]0;the rest of the line")).toBe("]0;the rest of the line");
  expect(plainText("cut off \u001b[31")).toBe("cut off [31");
});

test("a larger table's colours are ignored with their numbers", () => {
  expect(ansiParts("\u001b[38;5;31mtext")).toEqual([
    { text: "text", colour: undefined, bold: false },
  ]);
});
