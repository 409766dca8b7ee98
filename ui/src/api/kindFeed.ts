/**
 * Applies the events of a kind to the query cache: rows are replaced at once, and lists are read
 * again when objects came or went, or when their order may have changed.
 *
 * Each read of a list is a request to the cluster and an event of the audit log, so that changes of
 * single objects cause few.
 */

import type { QueryClient } from "@tanstack/react-query";
import type { KindList, KindObject } from "./kinds.ts";
import type { ResourceEvent } from "./live.ts";

/** Rows are replaced at most this often. */
const ROWS_EVERY_MS = 100;
/** How long after an object came or went the lists are read again. */
const COUNT_AFTER_MS = 2_000;
/** How long after an object changed the lists are read again: their order may have changed. */
const ORDER_AFTER_MS = 10_000;

export class KindFeed {
  readonly #client: QueryClient;
  readonly #listKey: readonly unknown[];
  readonly #objectKey: readonly unknown[];
  #changed = new Map<string, KindObject>();
  #rowsTimer: number | undefined;
  #readTimer: number | undefined;
  /** When the lists are read again, in milliseconds of the page's clock. */
  #readAt = Number.POSITIVE_INFINITY;

  constructor(client: QueryClient, clusterId: string, type: string) {
    this.#client = client;
    this.#listKey = ["kind-list", clusterId, type];
    this.#objectKey = ["kind-object", clusterId, type];
  }

  take({ name, resource }: ResourceEvent): void {
    if (name === "resource.change") {
      this.#changed.set(resource.id, resource as KindObject);
      this.#rowsTimer ??= window.setTimeout(() => this.#replaceRows(), ROWS_EVERY_MS);
      this.readAgain(ORDER_AFTER_MS);
    } else {
      this.readAgain(COUNT_AFTER_MS);
    }
  }

  /** Reads everything again after so many milliseconds, or earlier if that is due. */
  readAgain(after = COUNT_AFTER_MS): void {
    const at = performance.now() + after;
    if (at >= this.#readAt) return;
    this.#readAt = at;
    window.clearTimeout(this.#readTimer);
    this.#readTimer = window.setTimeout(() => {
      this.#readAt = Number.POSITIVE_INFINITY;
      void this.#client.invalidateQueries({ queryKey: this.#listKey });
      void this.#client.invalidateQueries({ queryKey: this.#objectKey });
    }, after);
  }

  stop(): void {
    window.clearTimeout(this.#rowsTimer);
    window.clearTimeout(this.#readTimer);
  }

  #replaceRows(): void {
    this.#rowsTimer = undefined;
    const changed = this.#changed;
    this.#changed = new Map();
    for (const query of this.#client.getQueryCache().findAll({ queryKey: this.#listKey })) {
      const { data } = query.state;
      if (isList(data)) {
        const list = withChanges(data, changed);
        if (list !== data) this.#client.setQueryData(query.queryKey, list);
      } else {
        // What is no list of the view cannot be changed by its objects.
        this.readAgain();
      }
    }
    const objects = this.#client.getQueryCache().findAll({ queryKey: this.#objectKey });
    if (objects.some(({ queryKey }) => changed.has(String(queryKey[3])))) this.readAgain();
  }
}

function isList(data: unknown): data is KindList {
  return typeof data === "object" && data !== null && "columns" in data && "data" in data;
}

/** The list with the changed objects in the places of the old ones; the same if it has none. */
export function withChanges(list: KindList, changed: ReadonlyMap<string, KindObject>): KindList {
  if (!list.data.some(({ id }) => changed.has(id))) return list;
  return { ...list, data: list.data.map((object) => changed.get(object.id) ?? object) };
}
