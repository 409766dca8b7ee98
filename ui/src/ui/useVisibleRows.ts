/**
 * Which rows of a long table are in the document: those in the window of the page, some around
 * them, and the one that has the focus, wherever it is.
 *
 * The page's `<main>` scrolls, not the table, so that heads of columns can stick to its top.
 */

import { defaultRangeExtractor, type Range, useVirtualizer } from "@tanstack/react-virtual";
import { useLayoutEffect, useRef, useState } from "react";

/** Rows beyond the window, so that Tab finds the next one. */
const BEYOND = 10;

interface Row {
  key: string;
}

export interface VisibleIndex {
  index: number;
  /** Height of the rows between the one before and this one, in pixels. */
  gap: number;
}

export interface VisibleRow<T> extends VisibleIndex {
  row: T;
}

interface LongTable {
  /** Rows, also those that are not in the document. */
  count: number;
  /** Estimated height of a row that has not been drawn, in pixels. */
  heightOf(index: number): number;
  /** What stays the same when a row moves. Nothing: rows are alike, and none is measured. */
  keyOf?: (index: number) => string | number;
  /** The row that has the focus; below 0: none. */
  focused: number;
  /** The row at the top of the window at first. */
  start?: number;
}

interface VisibleIndexes {
  visible: VisibleIndex[];
  /** Height of the rows after the last one, in pixels. */
  gapAfter: number;
  /** For the frame around the table. */
  frame: React.RefObject<HTMLDivElement | null>;
  /** For each row, which also has its index as `data-index`. */
  measure(row: HTMLTableRowElement | null): void;
  /** The rows in the window itself: the first and the last. */
  window: { first: number; last: number };
  /** Forgets the heights of all rows. */
  forgetHeights(): void;
}

export function useVisibleIndexes(table: LongTable): VisibleIndexes {
  const { count, heightOf, keyOf, focused, start = 0 } = table;
  const frame = useRef<HTMLDivElement>(null);
  const [above, setAbove] = useState(0);
  const distance = () => {
    const main = frame.current?.closest("main");
    if (!frame.current || !main) return undefined;
    const top = frame.current.getBoundingClientRect().top - main.getBoundingClientRect().top;
    return { main, above: Math.round(top + main.scrollTop) };
  };
  useLayoutEffect(() => {
    // Content above the table changes its height without an event: notices, wrapping filters.
    const measured = distance();
    if (measured) setAbove(measured.above);
  });
  const virtualizer = useVirtualizer({
    count,
    getScrollElement: () => frame.current?.closest("main") ?? null,
    estimateSize: heightOf,
    initialOffset: start * heightOf(0),
    ...(keyOf && { getItemKey: keyOf }),
    rangeExtractor: (range: Range) => withIndex(defaultRangeExtractor(range), focused, count),
    overscan: BEYOND,
    scrollMargin: above,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: only once.
  useLayoutEffect(() => {
    if (start === 0) return;
    const scroll = () => {
      const measured = distance();
      if (measured) measured.main.scrollTop = measured.above + start * heightOf(0);
    };
    scroll();
    // The frame of the page leads to the top of a new page; this is after that.
    const later = requestAnimationFrame(scroll);
    return () => cancelAnimationFrame(later);
  }, []);
  let end = above;
  const visible = virtualizer.getVirtualItems().map((item) => {
    const gap = item.start - end;
    end = item.end;
    return { index: item.index, gap };
  });
  return {
    visible,
    gapAfter: Math.max(0, above + virtualizer.getTotalSize() - end),
    frame,
    measure: virtualizer.measureElement,
    window: {
      first: virtualizer.range?.startIndex ?? start,
      last: virtualizer.range?.endIndex ?? start,
    },
    forgetHeights: () => virtualizer.measure(),
  };
}

interface VisibleRows<T> extends Omit<VisibleIndexes, "visible" | "window" | "forgetHeights"> {
  visible: VisibleRow<T>[];
  /** For the table: tracks the row that has the focus. */
  onFocus(event: React.FocusEvent): void;
  onBlur(): void;
}

/** For rows that are all in memory. `heightOf`: estimated height of a row, in pixels. */
export function useVisibleRows<T extends Row>(
  rows: readonly T[],
  heightOf: (row: T) => number,
): VisibleRows<T> {
  const [key, setKey] = useState<string>();
  const { visible, gapAfter, frame, measure } = useVisibleIndexes({
    count: rows.length,
    heightOf: (index) => {
      const row = rows[index];
      return row ? heightOf(row) : 0;
    },
    keyOf: (index) => rows[index]?.key ?? index,
    focused: key === undefined ? -1 : rows.findIndex((row) => row.key === key),
  });
  return {
    visible: visible.flatMap(({ index, gap }) => {
      const row = rows[index];
      return row ? [{ row, index, gap }] : [];
    }),
    gapAfter,
    frame,
    measure,
    onFocus: (event) => setKey(rows[focusedIndex(event)]?.key),
    onBlur: () => setKey(undefined),
  };
}

/** The index of the row that got the focus; below 0: the focus is in none. */
export function focusedIndex({ target }: React.FocusEvent): number {
  return Number(target.closest("tr")?.dataset.index ?? -1);
}

function withIndex(indexes: number[], index: number, count: number): number[] {
  if (index < 0 || index >= count || indexes.includes(index)) return indexes;
  return [...indexes, index].sort((one, other) => one - other);
}
