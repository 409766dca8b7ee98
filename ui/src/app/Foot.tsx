/** The footer: freshness of the displayed data, and the running versions. */

import { IconTerminal2 } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useFreshness } from "../api/freshness.ts";
import type { Freshness } from "../api/live.ts";
import { clustersQuery } from "../api/queries.ts";
import { conditionOf } from "../features/clusters/conditions.ts";
import { byRef, lastHeard } from "../features/clusters/model.ts";
import { OperationsDialog } from "../features/operations/OperationsDialog.tsx";
import { useOperations } from "../features/operations/operations.ts";
import { shellObstacle, showShell } from "../features/shells/shells.ts";
import { count } from "../lib/quantity.ts";
import { clock, exact, length, moment, point } from "../lib/time.ts";
import { Shape, State } from "../ui/StateMark.tsx";
import { Key } from "../ui/Tags.tsx";
import { useNow } from "../ui/Time.tsx";
import styles from "./Foot.module.css";
import type { RouteScope } from "./routeScope.ts";

/** The server sends a frame every 5 s; after a longer silence the footer shows it. */
const QUIET_MAX_MS = 7_000;
const TICK_MS = 1_000;

export function Foot({ scope }: { scope: RouteScope }) {
  const { dataUpdatedAt } = useQuery(clustersQuery);
  const freshness = useFreshness();
  const now = useNow(TICK_MS);
  const [open, setOpen] = useState(false);
  return (
    <>
      <footer className={styles.foot}>
        <FreshnessWord freshness={freshness} readAt={dataUpdatedAt} now={now} />
        {/* Without the server, the state of agents is unknown. */}
        {freshness.state !== "lost" && <Agents scope={scope} now={now} />}
        <span className="grow" />
        <OperationsEntry onOpen={() => setOpen(true)} />
        <ShellEntry scope={scope} />
        <span className={styles.version}>Drover {__VERSION__}</span>
      </footer>
      {/* Not inside the footer, whose parts are landmarks. */}
      {open && <OperationsDialog onClose={() => setOpen(false)} />}
    </>
  );
}

interface FreshnessWordProps {
  freshness: Freshness;
  /** When the list of clusters was last up to date, in milliseconds; 0: never. */
  readAt: number;
  now: Date;
}

function FreshnessWord({ freshness: { state, heardAt }, readAt, now }: FreshnessWordProps) {
  if (state === "live" && heardAt) {
    const silent = now.getTime() - heardAt.getTime();
    const late = silent > QUIET_MAX_MS;
    return (
      <span className={styles.part} title={`Last heard from the server ${exact(heardAt)}`}>
        <span role="status">
          <State tone={late ? "wait" : "ok"}>{late ? "Catching up" : "Live"}</State>
        </span>
        <span>heard {length(silent)} ago</span>
      </span>
    );
  }
  if (state === "lost") {
    const at = readAt ? new Date(readAt) : heardAt;
    return (
      <span className={styles.part} title={at && exact(at)}>
        <span role="status">
          <State tone="off">{at ? `Offline, as of ${clock(at)}` : "Offline"}</State>
        </span>
        <span>trying again</span>
      </span>
    );
  }
  return (
    <span className={styles.part}>
      <span role="status">
        <State tone="run">Connecting</State>
      </span>
    </span>
  );
}

/** Shows what the page has under way, and asks before the page is left. */
function OperationsEntry({ onOpen }: { onOpen(): void }) {
  const operations = useOperations();
  const running = operations.filter(({ state }) => state === "running");
  const isBusy = running.length > 0;
  useEffect(() => {
    if (!isBusy) return;
    const hold = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", hold);
    return () => window.removeEventListener("beforeunload", hold);
  }, [isBusy]);
  if (operations.length === 0) return null;
  const [first] = running;
  return (
    <button type="button" className={styles.shell} onClick={onOpen}>
      <Shape tone={isBusy ? "run" : "done"} />
      {first ? `${first.title}: ${count(first.done)} of ${count(first.total)}` : "Operations"}
    </button>
  );
}

/** Shows the shell of the cluster. */
function ShellEntry({ scope }: { scope: RouteScope }) {
  const { data: clusters = [] } = useQuery(clustersQuery);
  const cluster = scope.cluster ? byRef(clusters, scope.cluster) : undefined;
  if (!cluster || shellObstacle(cluster)) return null;
  return (
    <button type="button" className={styles.shell} onClick={() => showShell(cluster)}>
      <IconTerminal2 size={14} stroke={1.5} aria-hidden="true" />
      kubectl shell on {cluster.name} <Key>Ctrl `</Key>
    </button>
  );
}

/** For the fleet, the number of connected agents; for one cluster, since when. */
function Agents({ scope, now }: { scope: RouteScope; now: Date }) {
  const { data: clusters } = useQuery(clustersQuery);
  if (!clusters) return null;
  if (scope.cluster) {
    const cluster = byRef(clusters, scope.cluster);
    if (!cluster || cluster.internal) return null;
    const heard = lastHeard(cluster);
    const since = point(conditionOf(cluster, "Connected")?.lastTransitionTime);
    if (heard !== "live") {
      return (
        <span className={styles.part}>
          <Shape tone={heard ? "off" : "wait"} />
          {heard ? `Agent silent since ${moment(heard, now)}` : "Agent never connected"}
        </span>
      );
    }
    const age = since && ` for ${length(now.getTime() - since.getTime())}`;
    return <span>Agent connected{age}</span>;
  }
  const agents = clusters.filter((cluster) => !cluster.internal);
  if (agents.length === 0) return null;
  const live = agents.filter((cluster) => lastHeard(cluster) === "live").length;
  return (
    <span>
      {count(live)} of {count(agents.length)} {agents.length === 1 ? "agent" : "agents"} connected
    </span>
  );
}
