/** The part of the clusters page's state that is in its address. */

import type { Tone } from "../../ui/StateMark.tsx";
import { SORT_KEYS, type SortKey } from "./model.ts";

export interface ClusterSearch {
  /** Free text. */
  q?: string;
  /** Only clusters of this tone. */
  state?: Tone;
  sort?: SortKey;
  descending?: boolean;
  /** The label that the list is grouped by; nothing: by state. */
  group?: string;
  /** Waiting clusters are shown regardless of their number. */
  waiting?: true;
  /** The import dialog: `new`, or the cluster that is being imported. */
  import?: string;
}

/** Changes part of it. `replace`: in place of the current entry of the browser's history. */
export type SearchChange = (
  next: Partial<Record<keyof ClusterSearch, unknown>>,
  replace?: boolean,
) => void;

const TONES: readonly Tone[] = ["ok", "run", "wait", "warn", "err", "off", "rem", "done"];

/** Reads the known parts of an address, and ignores the rest. */
export function readSearch(raw: Record<string, unknown>): ClusterSearch {
  const search: ClusterSearch = {};
  if (typeof raw.q === "string" && raw.q) search.q = raw.q;
  const state = TONES.find((tone) => tone === raw.state);
  if (state) search.state = state;
  const sort = SORT_KEYS.find((key) => key === raw.sort);
  if (sort) search.sort = sort;
  if (raw.descending === true) search.descending = true;
  if (typeof raw.group === "string" && raw.group) search.group = raw.group;
  if (raw.waiting === true) search.waiting = true;
  if (typeof raw.import === "string" && raw.import) search.import = raw.import;
  return search;
}
