/**
 * Puts what the change feed says into the lists of the query cache.
 *
 * A list's key is `["list", type, cluster?]`. Events are taken in together, a few times per second at most,
 * because a feed that opens tells everything there is. An answer to a list request that was under way
 * while events came gets those events too, so that it cannot undo them.
 */

import type { QueryClient, QueryKey } from "@tanstack/react-query";
import type { ResourceEvent } from "./live.ts";

/** Between two changes of the cache. */
const FLUSH_EVERY_MS = 60;
/** How long events are kept for answers under way; longer than any answer may take. */
const EVENT_AGE_MAX_MS = 30_000;

export type ListKey = readonly ["list", string, string?];

interface Noted {
  event: ResourceEvent;
  at: number;
}

const feeds = new WeakMap<QueryClient, CacheFeed>();

/** The feed of a query cache: all sockets put their events into the same one. */
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

  /** Reads a list and applies what was heard since the request began. */
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

/** The list with the events that concern it. Pure. */
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

/** What goes may be told by id and type alone; then the id decides. */
function isOf([, type, cluster]: ListKey, { name, resource }: ResourceEvent): boolean {
  if (resource.type !== type) return false;
  if (cluster === undefined || name === "resource.remove") return true;
  return (resource as { clusterId?: unknown }).clusterId === cluster;
}
