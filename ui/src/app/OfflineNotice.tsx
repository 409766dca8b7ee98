/**
 * The notice on all pages while the server does not respond, with the age of the displayed data.
 */

import { useQuery } from "@tanstack/react-query";
import { clustersQuery } from "../api/queries.ts";
import { exact, moment } from "../lib/time.ts";
import { Shape } from "../ui/StateMark.tsx";
import { useNow } from "../ui/Time.tsx";
import styles from "./OfflineNotice.module.css";

const TICK_MS = 60_000;

export function OfflineNotice({ heardAt }: { heardAt: Date | undefined }) {
  const { dataUpdatedAt } = useQuery(clustersQuery);
  const now = useNow(TICK_MS);
  const at = dataUpdatedAt ? new Date(dataUpdatedAt) : heardAt;
  return (
    <div className={styles.notice}>
      <Shape tone="off" />
      <p>
        <b>The server does not respond.</b>{" "}
        {at ? (
          <>
            What you see is as of{" "}
            <time dateTime={at.toISOString()} title={exact(at)}>
              {moment(at, now)}
            </time>
            . The connection is retried automatically.
          </>
        ) : (
          "The connection is retried automatically."
        )}
      </p>
    </div>
  );
}
