/** What Kubernetes reports of an object, the newest first. */

import { useQuery } from "@tanstack/react-query";
import { sentence } from "../../api/errors.ts";
import { useKindFeed } from "../../api/freshness.ts";
import { type KindList, type KindObject, kindListQuery } from "../../api/kinds.ts";
import { count } from "../../lib/quantity.ts";
import { point } from "../../lib/time.ts";
import { Blank, Notice, Skeleton } from "../../ui/Notice.tsx";
import { State } from "../../ui/StateMark.tsx";
import table from "../../ui/Table.module.css";
import { Ago, useNow } from "../../ui/Time.tsx";
import { useCluster } from "../clusters/ClusterPage.tsx";
import styles from "./Explorer.module.css";

const TICK_MS = 10_000;
const EVENTS_MAX = 200;
/** Where events of objects without a namespace are. */
const CLUSTER_EVENTS = "default";

export type KubeEvent = KindObject & {
  /** Displaced by the type of the view. */
  _type?: string;
  reason?: string;
  message?: string;
  involvedObject?: { kind?: string; name?: string; namespace?: string };
  count?: number;
  series?: { count?: number; lastObservedTime?: string };
  lastTimestamp?: string | null;
  eventTime?: string | null;
};

export function EventsView({ object }: { object: KindObject }) {
  const cluster = useCluster();
  const now = useNow(TICK_MS);
  const { uid, namespace = CLUSTER_EVENTS } = object.metadata;
  const query = new URLSearchParams({
    filter: `involvedObject.uid='${uid}'`,
    sort: "-lastTimestamp,-eventTime",
    pagesize: String(EVENTS_MAX),
    exclude: "metadata.managedFields",
  });
  const list = useQuery(
    kindListQuery(cluster.id, "events", `/${encodeURIComponent(namespace)}?${query}`),
  );
  useKindFeed(cluster.id, "events", list.data?.revision, { namespace });
  if (list.isPending) return <Skeleton rows={4} what="events" />;
  if (list.isError) {
    return (
      <Notice tone="err" title="Its events could not be read.">
        {sentence(list.error)}
      </Notice>
    );
  }
  const events = (list.data as KindList).data as KubeEvent[];
  if (events.length === 0) {
    return (
      <Blank title="No events">
        Kubernetes keeps events for about an hour: nothing was reported in that time.
      </Blank>
    );
  }
  return (
    <div className={table.frame}>
      <table className={`${table.table} ${styles.events}`}>
        <caption className="hidden">Events</caption>
        <thead>
          <tr>
            <th scope="col" className={styles.state}>
              Reason
            </th>
            <th scope="col">Message</th>
            <th scope="col" className={`${styles.number} ${table.right}`}>
              Times
            </th>
            <th scope="col" className={`${styles.age} ${table.right}`}>
              Last
            </th>
          </tr>
        </thead>
        <tbody>
          {events.map((event) => {
            const last = point(lastSeen(event));
            return (
              <tr key={event.id}>
                <td>
                  <State tone={event._type === "Warning" ? "warn" : "done"}>
                    {event.reason || "—"}
                  </State>
                </td>
                <td className={styles.message}>{event.message}</td>
                <td className={table.right}>{count(event.series?.count ?? event.count ?? 1)}</td>
                <td className={table.right}>{last ? <Ago at={last} now={now} /> : "—"}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** When an event was last reported. */
export function lastSeen({
  series,
  lastTimestamp,
  eventTime,
  metadata,
}: KubeEvent): string | undefined {
  return series?.lastObservedTime || lastTimestamp || eventTime || metadata.creationTimestamp;
}
