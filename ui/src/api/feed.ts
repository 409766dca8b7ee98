/**
 * Applies events of the change feed to the lists of the query cache.
 *
 * A list's key is `["list", type, cluster?]`. Events are applied in batches, a few times per second
 * at most, because a new feed sends all objects. Events that arrive during a list request are also
 * applied to its response, so that it cannot undo them.
 */

import type { QueryClient, QueryKey } from "@tanstack/react-query";
import type { ResourceEvent } from "./live.ts";

/** Interval between two changes of the cache. */
const FLUSH_EVERY_MS = 60;
/** How long events are retained for pending responses; longer than the timeout of a response. */
const EVENT_AGE_MAX_MS = 30_000;

export type ListKey = readonly ["list", string, string?];

interface Noted {
  event: ResourceEvent;
  at: number;
}

const feeds = new WeakMap<QueryClient, CacheFeed>();

/** The feed of a query cache: all sockets apply their events to the same cache. */
export function feedOf(client: QueryClient): CacheFeed {
  const known = feeds.get(client) ?? new CacheFeed(client);
  feeds.set(client, known);
  return known;
}

export class CacheFeed {
  readonly #client: QueryClient;
  #fresh: ResourceEvent[] = [];
  #recent: Noted[] = [];
  #timer: number | undefined;

  constructor(client: QueryClient) {
    this.#client = client;
  }

  take(event: ResourceEvent): void {
    this.#fresh.push(event);
    this.#recent.push({ event, at: Date.now() });
    this.#timer ??= window.setTimeout(() => this.flush(), FLUSH_EVERY_MS);
  }

  /** Reads a list and applies the events since the start of the request. */
  async read<T extends { id: string; type: string }>(
    key: ListKey,
    fetchList: () => Promise<T[]>,
  ): Promise<T[]> {
    const since = Date.now();
    const list = await fetchList();
    const meanwhile = this.#recent.filter(({ at }) => at >= since).map(({ event }) => event);
    return applied(key, list, meanwhile);
  }

  flush(): void {
    window.clearTimeout(this.#timer);
    this.#timer = undefined;
    const events = this.#fresh;
    this.#fresh = [];
    const oldest = Date.now() - EVENT_AGE_MAX_MS;
    this.#recent = this.#recent.filter(({ at }) => at >= oldest);
    const types = new Set(events.map((event) => event.resource.type));
    const concerned = (key: QueryKey) => key[0] === "list" && types.has(String(key[1]));
    for (const query of this.#client.getQueryCache().getAll()) {
      if (!concerned(query.queryKey)) continue;
      const key = query.queryKey as ListKey;
      this.#client.setQueryData(key, (list: { id: string; type: string }[] | undefined) =>
        list ? applied(key, list, events) : undefined,
      );
    }
  }
}

/** Applies matching events to a list. Pure. */
export function applied<T extends { id: string; type: string }>(
  key: ListKey,
  list: T[],
  events: readonly ResourceEvent[],
): T[] {
  const mine = events.filter((event) => isOf(key, event));
  if (mine.length === 0) return list;
  const byId = new Map(list.map((resource) => [resource.id, resource]));
  for (const { name, resource } of mine) {
    if (name === "resource.remove") byId.delete(resource.id);
    else byId.set(resource.id, resource as T);
  }
  return [...byId.values()];
}

/** A deleted object may be reported by id and type alone; then the id is compared. */
function isOf([, type, cluster]: ListKey, { name, resource }: ResourceEvent): boolean {
  if (resource.type !== type) return false;
  if (cluster === undefined || name === "resource.remove") return true;
  return (resource as { clusterId?: unknown }).clusterId === cluster;
}
