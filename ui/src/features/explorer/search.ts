/** The filters, order and page of a list, and the view of an object, in their addresses. */

import { PAGE_SIZE } from "../../api/kinds.ts";

export interface KindSearch {
  /** A part of the name. */
  q?: string;
  namespace?: string;
  /** The field that the list is sorted by. */
  sort?: string;
  descending?: boolean;
  /** Begins at 1. */
  page?: number;
}

/** A change of a list; `undefined` removes a part. */
export type KindSearchChange = { [Part in keyof KindSearch]?: KindSearch[Part] | undefined };

/** Reads the known parts of an address, and ignores the rest. */
export function readKindSearch(raw: Record<string, unknown>): KindSearch {
  const search: KindSearch = {};
  // A name of digits is parsed as a number.
  if (raw.q !== undefined && raw.q !== "") search.q = String(raw.q);
  if (raw.namespace) search.namespace = String(raw.namespace);
  if (typeof raw.sort === "string" && raw.sort) search.sort = raw.sort;
  if (raw.descending === true) search.descending = true;
  if (typeof raw.page === "number" && Number.isInteger(raw.page) && raw.page > 1) {
    search.page = raw.page;
  }
  return search;
}

/** Whether something is left out of the list. */
export function isFiltered({ q, namespace }: KindSearch): boolean {
  return !!q || !!namespace;
}

/** What follows the type in the path of the list. */
export function belowKind(search: KindSearch): string {
  const query = new URLSearchParams({ pagesize: String(PAGE_SIZE) });
  query.set("page", String(search.page ?? 1));
  query.set("exclude", "metadata.managedFields");
  // Quotes and commas separate filters; no name has them.
  const part = search.q?.replace(/[',]/g, "");
  if (part) query.set("filter", `metadata.name=${part}`);
  if (search.sort) query.set("sort", `${search.descending ? "-" : ""}${search.sort}`);
  const namespace = search.namespace ? `/${encodeURIComponent(search.namespace)}` : "";
  return `${namespace}?${query}`;
}

/** Parts of the page of an object. */
export const VIEWS = [
  "containers",
  "logs",
  "shell",
  "details",
  "data",
  "owned",
  "revisions",
  "map",
  "events",
  "yaml",
] as const;
export type ViewName = (typeof VIEWS)[number];

export interface ObjectSearch {
  /** Nothing: the first of the object's kind. */
  view?: ViewName;
  /** Of a pod, for logs and shells. */
  container?: string;
}

/** Reads the known parts of an address, and ignores the rest. */
export function readObjectSearch(raw: Record<string, unknown>): ObjectSearch {
  const view = VIEWS.find((name) => name === raw.view);
  const container = raw.container === undefined ? undefined : String(raw.container);
  return { ...(view && { view }), ...(container && { container }) };
}
