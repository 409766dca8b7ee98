/** What the driver of a cluster does and did: its log, and the button that cancels it. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { ApiError, sentence } from "../../api/errors.ts";
import { isPaused, pauseDriver, provisioningLogQuery } from "../../api/provisioning.ts";
import { clustersQuery } from "../../api/queries.ts";
import type { Cluster } from "../../api/types.ts";
import { Button } from "../../ui/Button.tsx";
import { Card } from "../../ui/Card.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { isAtWork } from "./model.ts";
import styles from "./Provisioning.module.css";

/** Who may not change the cluster does not see its log. */
const FORBIDDEN = 403;

export function ProvisioningCard({ cluster }: { cluster: Cluster }) {
  if (!cluster.links?.provisioningLog) return null;
  return <Provisioning cluster={cluster} />;
}

function Provisioning({ cluster }: { cluster: Cluster }) {
  const client = useQueryClient();
  const query = provisioningLogQuery(cluster.id, isAtWork(cluster));
  const log = useQuery(query);
  // The last lines come with the last change of the state.
  // biome-ignore lint/correctness/useExhaustiveDependencies: read anew whenever the state changes.
  useEffect(() => {
    void client.invalidateQueries({ queryKey: query.queryKey });
  }, [cluster.state, cluster.transitioningMessage]);
  const lines = log.data?.lines ?? [];
  if (log.error instanceof ApiError && log.error.status === FORBIDDEN) return null;
  return (
    <Card title="Provisioning" aside={<PauseButton cluster={cluster} />}>
      {log.isError && (
        <Notice tone="err" title="The log could not be read.">
          {sentence(log.error)}
        </Notice>
      )}
      {log.isSuccess && lines.length === 0 && (
        <p className="second">The driver has not begun yet.</p>
      )}
      {lines.length > 0 && <Lines lines={lines} />}
    </Card>
  );
}

/** The end of the log stays in view unless the reader scrolled up. */
function Lines({ lines }: { lines: readonly string[] }) {
  const frame = useRef<HTMLPreElement>(null);
  const atEnd = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: it follows the lines.
  useEffect(() => {
    const element = frame.current;
    if (element && atEnd.current) element.scrollTop = element.scrollHeight;
  }, [lines]);
  return (
    <pre
      ref={frame}
      className={styles.log}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also without a mouse.
      tabIndex={0}
      role="log"
      aria-label="Provisioning log"
      onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
        atEnd.current = scrollHeight - scrollTop - clientHeight < 20;
      }}
    >
      {lines.join("\n")}
    </pre>
  );
}

function PauseButton({ cluster }: { cluster: Cluster }) {
  const client = useQueryClient();
  const paused = isPaused(cluster);
  const pause = useMutation({
    mutationFn: () => pauseDriver(cluster, !paused),
    onSuccess: () => {
      notify("ok", paused ? "The driver goes on" : "The driver is cancelled");
      void client.invalidateQueries({ queryKey: clustersQuery.queryKey });
    },
    onError: (error) => notify("err", sentence(error)),
  });
  // Removal goes on, whatever is paused.
  if (!cluster.links?.update || cluster.state === "removing") return null;
  if (!paused && !isAtWork(cluster)) return null;
  return (
    <Button small onClick={() => pause.mutate()}>
      {paused ? "Resume" : "Cancel"}
    </Button>
  );
}
