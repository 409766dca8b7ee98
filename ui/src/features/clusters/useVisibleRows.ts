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

export interface VisibleRow<T> {
  row: T;
  index: number;
  /** Height of the rows between the one before and this one, in pixels. */
  gap: number;
}

interface VisibleRows<T> {
  visible: VisibleRow<T>[];
  /** Height of the rows after the last one, in pixels. */
  gapAfter: number;
  /** For the frame around the table. */
  frame: React.RefObject<HTMLDivElement | null>;
  /** For each row, which also has its index as `data-index`. */
  measure(row: HTMLTableRowElement | null): void;
  /** For the table: tracks the row that has the focus. */
  onFocus(event: React.FocusEvent): void;
  onBlur(): void;
}

/** `heightOf`: estimated height of a row that has not been drawn, in pixels. */
export function useVisibleRows<T extends Row>(
  rows: readonly T[],
  heightOf: (row: T) => number,
): VisibleRows<T> {
  const frame = useRef<HTMLDivElement>(null);
  const [focused, setFocused] = useState<string>();
  const [above, setAbove] = useState(0);
  useLayoutEffect(() => {
    // Content above the table changes its height without an event: notices, wrapping filters.
    const main = frame.current?.closest("main");
    if (!frame.current || !main) return;
    const distance = frame.current.getBoundingClientRect().top - main.getBoundingClientRect().top;
    setAbove(Math.round(distance + main.scrollTop));
  });
  const focusedIndex = focused === undefined ? -1 : rows.findIndex(({ key }) => key === focused);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current?.closest("main") ?? null,
    estimateSize: (index) => {
      const row = rows[index];
      return row ? heightOf(row) : 0;
    },
    getItemKey: (index) => rows[index]?.key ?? index,
    rangeExtractor: (range: Range) => withIndex(defaultRangeExtractor(range), focusedIndex),
    overscan: BEYOND,
    scrollMargin: above,
  });
  let end = above;
  const visible = virtualizer.getVirtualItems().flatMap((item) => {
    const row = rows[item.index];
    if (!row) return [];
    const gap = item.start - end;
    end = item.end;
    return [{ row, index: item.index, gap }];
  });
  return {
    visible,
    gapAfter: Math.max(0, above + virtualizer.getTotalSize() - end),
    frame,
    measure: virtualizer.measureElement,
    onFocus: ({ target }) => {
      const index = Number(target.closest("tr")?.dataset.index ?? Number.NaN);
      setFocused(rows[index]?.key);
    },
    onBlur: () => setFocused(undefined),
  };
}

function withIndex(indexes: number[], index: number): number[] {
  if (index < 0 || indexes.includes(index)) return indexes;
  return [...indexes, index].sort((one, other) => one - other);
}
