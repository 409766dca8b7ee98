/** The last warnings that Kubernetes reported in a cluster. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useKindFeed } from "../../api/freshness.ts";
import { kindListQuery } from "../../api/kinds.ts";
import type { Cluster } from "../../api/types.ts";
import { point } from "../../lib/time.ts";
import { paths } from "../../paths.ts";
import { Card } from "../../ui/Card.tsx";
import { State } from "../../ui/StateMark.tsx";
import { Ago, useNow } from "../../ui/Time.tsx";
import { type KubeEvent, lastSeen } from "./EventsView.tsx";
import styles from "./Explorer.module.css";

const TICK_MS = 10_000;
const QUERY = new URLSearchParams({
  fieldSelector: "type=Warning",
  sort: "-lastTimestamp,-eventTime",
  pagesize: "6",
  exclude: "metadata.managedFields",
});

/** Nothing where the user may not list events, or there is no cluster to ask. */
export function WarningsCard({ cluster }: { cluster: Cluster }) {
  const now = useNow(TICK_MS);
  const enabled = cluster.state === "active" && !cluster.internal;
  const list = useQuery({
    ...kindListQuery(cluster.id, "events", `?${QUERY}`),
    enabled,
  });
  useKindFeed(cluster.id, "events", enabled ? list.data?.revision : undefined);
  if (!list.data) return null;
  const events = list.data.data as KubeEvent[];
  return (
    <Card
      title="Warnings"
      flush
      aside={
        <Link className="link small" {...paths.kind(cluster.name, "events")}>
          All events
        </Link>
      }
    >
      <ul>
        {events.map((event) => {
          const last = point(lastSeen(event));
          const { kind, name } = event.involvedObject ?? {};
          return (
            <li key={event.id} className={styles.warning}>
              <State tone="warn" named>
                {event.reason || "Warning"}
              </State>
              <span className="strong ellipsis">{[kind, name].filter(Boolean).join(" ")}</span>
              <span className="grow second ellipsis" title={event.message}>
                {event.message}
              </span>
              {last && (
                <span className="third small">
                  <Ago at={last} now={now} />
                </span>
              )}
            </li>
          );
        })}
        {events.length === 0 && (
          <li className={`${styles.warning} second`}>None that the cluster still knows.</li>
        )}
      </ul>
    </Card>
  );
}
