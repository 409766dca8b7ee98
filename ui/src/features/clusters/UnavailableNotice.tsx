/** Shown on each page of an unavailable cluster: what fails, for how long, and the next step. */

import type { Cluster } from "../../api/types.ts";
import { exact, moment } from "../../lib/time.ts";
import { Notice } from "../../ui/Notice.tsx";
import { useNow } from "../../ui/Time.tsx";
import { failureOf, pastSince, reasonOf } from "./model.ts";
import { NextStepLink } from "./NextStepLink.tsx";

const TICK_MS = 1_000;

interface UnavailableNoticeProps {
  cluster: Cluster;
  /** Whether the page itself says what helps. */
  withoutLink?: boolean;
}

export function UnavailableNotice({ cluster, withoutLink = false }: UnavailableNoticeProps) {
  const now = useNow(TICK_MS);
  const since = pastSince(cluster);
  if (!since) return null;
  const reason = reasonOf(cluster, now);
  return (
    <Notice
      tone="off"
      title={failureOf(cluster, now)}
      actions={reason?.next && !withoutLink && <NextStepLink cluster={cluster} reason={reason} />}
    >
      {cluster.state === "removing" && reason && `${reason.text} `}
      {"Nodes, figures and conditions are as they were at "}
      <time dateTime={since.toISOString()} title={exact(since)}>
        {moment(since, now)}
      </time>
      .
    </Notice>
  );
}
