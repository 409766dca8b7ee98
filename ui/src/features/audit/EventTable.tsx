/** Events as rows, the newest first. A refusal has a second line with its reason. */

import { Fragment, memo } from "react";
import type { AuditEvent } from "../../api/types.ts";
import { exact, moment, point } from "../../lib/time.ts";
import { useNarrow } from "../../ui/media.ts";
import { Present } from "../../ui/Past.tsx";
import { State } from "../../ui/StateMark.tsx";
import table from "../../ui/Table.module.css";
import { useNow } from "../../ui/Time.tsx";
import styles from "./AuditPage.module.css";
import {
  addressWord,
  eventReason,
  eventWord,
  requestWord,
  resultTone,
  resultWord,
  userWord,
} from "./model.ts";

/** How often the current day is checked. */
const TICK_MS = 60_000;

interface EventTableProps {
  events: readonly AuditEvent[];
  /** Absent: all events are of one cluster. */
  nameOf?: ((clusterId: string) => string) | undefined;
}

export function EventTable({ events, nameOf }: EventTableProps) {
  const narrow = useNarrow();
  const today = useNow(TICK_MS).toDateString();
  return (
    <div className={table.frame}>
      <table className={`${table.table} ${styles.table}`} data-narrow={narrow || undefined}>
        <caption className="hidden">Events, the newest first</caption>
        <thead>
          <tr>
            <th scope="col" className={styles.result}>
              Result
            </th>
            {!narrow && (
              <th scope="col" className={styles.time}>
                Time
              </th>
            )}
            <th scope="col" className={styles.event}>
              Event
            </th>
            <th scope="col" className={styles.user}>
              User
            </th>
            {!narrow && (
              <>
                <th scope="col" className={styles.address}>
                  From
                </th>
                {nameOf && (
                  <th scope="col" className={styles.cluster}>
                    Cluster
                  </th>
                )}
                <th scope="col">Request</th>
              </>
            )}
          </tr>
        </thead>
        <tbody>
          {events.map((event) => (
            <EventRow
              key={event.id}
              event={event}
              today={today}
              narrow={narrow}
              cluster={nameOf && (event.clusterId ? nameOf(event.clusterId) : "—")}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface EventRowProps {
  event: AuditEvent;
  today: string;
  narrow: boolean;
  cluster?: string | undefined;
}

const EventRow = memo(function EventRow({ event, today, narrow, cluster }: EventRowProps) {
  const at = point(event.created);
  const reason = eventReason(event);
  const time = at && <time dateTime={at.toISOString()}>{moment(at, new Date(today))}</time>;
  return (
    <Fragment>
      <tr className={reason && table.explained} title={at && exact(at)}>
        <td>
          <Present>
            <State tone={resultTone(event)}>{resultWord(event)}</State>
          </Present>
        </td>
        {!narrow && <td className={table.quiet}>{time}</td>}
        <td className="strong">
          {eventWord(event)}
          {narrow && <div className={styles.below}>{time}</div>}
        </td>
        <td>{userWord(event)}</td>
        {!narrow && (
          <>
            <td className={`${table.quiet} mono`}>{addressWord(event)}</td>
            {cluster && <td className={table.quiet}>{cluster}</td>}
            <td className={`${table.quiet} mono`} title={requestWord(event)}>
              {requestWord(event)}
            </td>
          </>
        )}
      </tr>
      {reason && (
        <tr className={table.reason}>
          <td />
          <td colSpan={narrow ? 2 : cluster ? 6 : 5}>{reason}</td>
        </tr>
      )}
    </Fragment>
  );
});
