/** Freshness of the displayed data over all open change feeds, for React. */

import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useSyncExternalStore } from "react";
import { feedOf } from "./feed.ts";
import { KindFeed } from "./kindFeed.ts";
import { kindsPath } from "./kinds.ts";
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

/** What of a kind is followed; nothing more: all objects that the user may see. */
export interface Followed {
  namespace?: string | undefined;
  /** `namespace/name`, or `name`. */
  id?: string | undefined;
}

/**
 * Keeps the lists and objects of a kind current while the component is mounted. `revision`: of the newest list or object; nothing is followed before there is one.
 */
export function useKindFeed(
  clusterId: string,
  type: string,
  revision: string | undefined,
  { namespace, id }: Followed = {},
): void {
  const client = useQueryClient();
  const newest = useRef(revision);
  newest.current = revision;
  const isRead = revision !== undefined;
  useEffect(() => {
    if (!isRead) return;
    const changes = new KindFeed(client, clusterId, type);
    const feed = new LiveFeed({
      url: feedUrl(`${kindsPath(clusterId)}/subscribe`, []),
      greeting: () =>
        JSON.stringify({ resourceType: type, resourceVersion: newest.current, namespace, id }),
      onEvent: (event) => changes.take(event),
      onOpen: () => undefined,
      onLost: () => changes.readAgain(),
    });
    const forget = feed.subscribe(combine);
    open.add(feed);
    feed.start();
    return () => {
      changes.stop();
      feed.stop();
      forget();
      open.delete(feed);
      combine();
    };
  }, [client, clusterId, type, isRead, namespace, id]);
}

function isOf(key: readonly unknown[], types: string): boolean {
  return key[0] === "list" && types.split(",").includes(String(key[1]));
}
