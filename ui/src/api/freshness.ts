/** Freshness of the displayed data over all open change feeds, for React. */

import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { feedOf } from "./feed.ts";
import { type Freshness, feedUrl, LiveFeed } from "./live.ts";

const open = new Set<LiveFeed>();
const listeners = new Set<() => void>();
const NOTHING_OPEN: Freshness = { state: "opening", heardAt: undefined };
let combined: Freshness = NOTHING_OPEN;

function combine(): void {
  const states = [...open].map((feed) => feed.freshness());
  const worst =
    states.find(({ state }) => state === "lost") ?? states.find(({ state }) => state === "opening");
  combined = worst ?? states[0] ?? NOTHING_OPEN;
  for (const listener of listeners) listener();
}

/** The worst of all open feeds. */
export function useFreshness(): Freshness {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => combined,
  );
}

/**
 * Holds a change feed open while the component is mounted, and applies its events to the query
 * cache.
 *
 * When the feed is open (again) or cannot be opened, all lists are read again: in the first case
 * because of possible missed changes, in the second so that the data is at most one retry interval
 * old.
 */
export function useLiveFeed(path: string, resourceTypes: readonly string[]): void {
  const client = useQueryClient();
  const types = resourceTypes.join(",");
  useEffect(() => {
    const readAnew = () => {
      void client.invalidateQueries({ predicate: ({ queryKey }) => isOf(queryKey, types) });
    };
    const feed = new LiveFeed({
      url: feedUrl(path, types.split(",")),
      onEvent: (event) => feedOf(client).take(event),
      onOpen: readAnew,
      onLost: readAnew,
    });
    const forget = feed.subscribe(combine);
    open.add(feed);
    feed.start();
    return () => {
      feed.stop();
      forget();
      open.delete(feed);
      combine();
    };
  }, [client, path, types]);
}

function isOf(key: readonly unknown[], types: string): boolean {
  return key[0] === "list" && types.split(",").includes(String(key[1]));
}
