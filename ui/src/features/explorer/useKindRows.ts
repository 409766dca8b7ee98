/** The rows of a list of any length: those pages of it are read that are in the window. */

import { keepPreviousData, useQueries, useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { type KindList, type KindObject, kindListQuery, PAGE_SIZE } from "../../api/kinds.ts";
import { belowKind, type KindSearch } from "./search.ts";

/** What a table shows; objects that are not read yet have no content. */
export interface KindRows {
  count: number;
  at(index: number): KindObject | undefined;
  /** The objects that are read, in order. */
  loaded: readonly KindObject[];
}

/** How long the window stands before its pages are read: who drags a scroll bar passes many. */
const STANDS_MS = 80;
/** How long pages outside of the window are remembered. */
const REMEMBERED_MS = 30_000;
/** A window has rows of so many pages, even of a tall screen. */
const PAGES_MAX = 3;

/** The list with all its rows in memory. */
export function allRows({ data }: KindList): KindRows {
  return { count: data.length, at: (index) => data[index], loaded: data };
}

export function useKindRows(clusterId: string, type: string, search: KindSearch) {
  const { page: start = 1, ...content } = search;
  const list = JSON.stringify([clusterId, type, content]);
  const [top, setTop] = useState({ list, first: start, last: start });
  // Another list begins at its first page.
  const pages = top.list === list ? top : { list, first: 1, last: 1 };
  if (pages !== top) setTop(pages);
  const pageQuery = (page: number) => ({
    ...kindListQuery(clusterId, type, belowKind({ ...content, page })),
    gcTime: REMEMBERED_MS,
  });
  const head = useQuery({ ...pageQuery(pages.first), placeholderData: keepPreviousData });
  const numbers = pageNumbers(pages);
  const read = useQueries({ queries: numbers.map(pageQuery) });
  const present = new Map<number, KindList>();
  for (const [place, { data }] of read.entries()) {
    const page = numbers[place];
    if (page !== undefined && data) present.set(page, data);
  }
  // The rows of the list before stay until others are there.
  const before = useRef(present);
  const shown = head.isPlaceholderData && present.size === 0 ? before.current : present;
  useEffect(() => {
    if (present.size > 0) before.current = present;
  });
  const rows: KindRows = {
    count: head.data?.count ?? 0,
    at: (index) => shown.get(pageOf(index))?.data[index % PAGE_SIZE],
    loaded: [...shown.values()].flatMap(({ data }) => data),
  };
  const timer = useRef<number>(undefined);
  const onWindow = useCallback(
    (first: number, last: number) => {
      window.clearTimeout(timer.current);
      timer.current = window.setTimeout(
        () => setTop({ list, first: pageOf(first), last: pageOf(last) }),
        STANDS_MS,
      );
    },
    [list],
  );
  useEffect(() => () => window.clearTimeout(timer.current), []);
  return { head, rows, page: pages.first, onWindow };
}

/** The page of a row; pages begin at 1. */
function pageOf(index: number): number {
  return Math.floor(index / PAGE_SIZE) + 1;
}

function pageNumbers({ first, last }: { first: number; last: number }): number[] {
  const length = Math.min(last - first + 1, PAGES_MAX);
  return Array.from({ length }, (_, place) => first + place);
}
