/** What differs between two texts, line by line, with some lines around it. Pure. */

import { diffLines } from "diff";

export interface DiffLine {
  /** `left`: unchanged lines that are left out. */
  change: "added" | "removed" | "same" | "left";
  text: string;
}

/** Unchanged lines before and after a change. */
const AROUND = 3;
/** Lines that every write changes, which say nothing. */
const ALWAYS_CHANGED = /^ {2}(resourceVersion|generation): /;

/** The changed lines with those around them; empty if nothing differs. */
export function changedLines(before: string, after: string): DiffLine[] {
  const lines = diffLines(usual(before), usual(after)).flatMap(({ value, added, removed }) => {
    const change = added ? "added" : removed ? "removed" : "same";
    return value
      .replace(/\n$/, "")
      .split("\n")
      .map((text): DiffLine => ({ change, text }));
  });
  const isNear = (index: number) =>
    lines.slice(Math.max(index - AROUND, 0), index + AROUND + 1).some(isChanged);
  const shown: DiffLine[] = [];
  lines.forEach((line, index) => {
    if (isNear(index)) shown.push(line);
    else if (shown.length > 0 && shown.at(-1)?.change !== "left") {
      shown.push({ change: "left", text: "" });
    }
  });
  if (shown.at(-1)?.change === "left") shown.pop();
  return shown;
}

function isChanged({ change }: DiffLine): boolean {
  return change !== "same";
}

function usual(yaml: string): string {
  return yaml
    .split("\n")
    .filter((line) => !ALWAYS_CHANGED.test(line))
    .join("\n");
}
