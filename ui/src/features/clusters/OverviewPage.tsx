/** Overview of one cluster: what needs attention, capacity, nodes, health. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { nodesQuery, usageQuery } from "../../api/queries.ts";
import type { Cluster, Node } from "../../api/types.ts";
import { bytes, cores, count, percentText } from "../../lib/quantity.ts";
import { point } from "../../lib/time.ts";
import { paths } from "../../paths.ts";
import { Card } from "../../ui/Card.tsx";
import { Chart, type ChartPoint } from "../../ui/Chart.tsx";
import { WideMeter } from "../../ui/Meter.tsx";
import { Page } from "../../ui/Page.tsx";
import { Past, usePast, was } from "../../ui/Past.tsx";
import { Shape, State } from "../../ui/StateMark.tsx";
import { Ago, useNow } from "../../ui/Time.tsx";
import { WarningsCard } from "../explorer/WarningsCard.tsx";
import { ProvisioningCard } from "../provisioning/ProvisioningCard.tsx";
import { ClusterHead, useCluster } from "./ClusterPage.tsx";
import { explainAll, isTrue } from "./conditions.ts";
import { isAlreadyManaged } from "./managed.ts";
import {
  isMadeByDriver,
  isPast,
  lastHeard,
  ownLabels,
  problems,
  providerWord,
  reasonOf,
  type Usage,
  usage,
} from "./model.ts";
import { NextStepLink } from "./NextStepLink.tsx";
import { NodeTiles } from "./NodeTiles.tsx";
import { inOrder, nodeProblems, nodeTone, nodeWord } from "./nodes.ts";
import styles from "./OverviewPage.module.css";

const TICK_MS = 5_000;
/** So many missing samples are a gap. */
const GAP_INTERVALS = 2.5;
/** Lines under “Needs attention”; the rest is on the page of conditions. */
const LOOKS_SHOWN = 5;
/** Up to here nodes are lines with names; beyond, tiles of a map. */
const LINES_MAX = 7;

export function OverviewPage() {
  const cluster = useCluster();
  const now = useNow(TICK_MS);
  return (
    <Page title={cluster.name}>
      <ClusterHead />
      <NeedsALook cluster={cluster} now={now} />
      <Past when={isPast(cluster)}>
        <Rooms cluster={cluster} />
      </Past>
      <div className={styles.cards}>
        <Past when={isPast(cluster)}>
          <Nodes cluster={cluster} />
        </Past>
        <Health cluster={cluster} now={now} />
        <Facts cluster={cluster} now={now} />
      </div>
      <ProvisioningCard cluster={cluster} />
      <WarningsCard cluster={cluster} />
    </Page>
  );
}

function Rooms({ cluster }: { cluster: Cluster }) {
  const past = usePast();
  const { data: hour } = useQuery(usageQuery(cluster.id, cluster.links?.usage));
  const of = (name: "cpu" | "memory" | "pods"): History => ({
    gapMs: (hour?.intervalSeconds ?? 0) * GAP_INTERVALS * 1000,
    points: (hour?.samples ?? []).map(({ at, [name]: { requested, allocatable, used } }) => ({
      at: at * 1000,
      value: requested,
      whole: allocatable,
      used,
    })),
  });
  return (
    <div className={styles.cards} data-past={past || undefined}>
      <Room title="CPU" usage={usage(cluster, "cpu")} figure={cores} history={of("cpu")} />
      <Room title="Memory" usage={usage(cluster, "memory")} figure={bytes} history={of("memory")} />
      <Room title="Pods" usage={usage(cluster, "pods")} figure={count} history={of("pods")} pods />
    </div>
  );
}

/** Conditions that are not true, without those in a notice above. */
function NeedsALook({ cluster, now }: { cluster: Cluster; now: Date }) {
  const nodes = useQuery(nodesQuery(cluster.id));
  const past = isPast(cluster);
  const reason = past || isAlreadyManaged(cluster) ? undefined : reasonOf(cluster, now);
  const [first] = problems(cluster);
  const bad = past ? [] : nodeProblems(nodes.data ?? []);
  if (!reason && bad.length === 0) return null;
  return (
    <section className={styles.attention} aria-label="Needs attention">
      <ul>
        {reason && (
          <li className={styles.item}>
            <Shape tone={first?.tone ?? "wait"} />
            <span className="grow">
              <b>{first?.title ?? "State"}</b> <span className="second">{reason.text}</span>
            </span>
            <Since text={first?.since} now={now} />
            <NextStepLink cluster={cluster} reason={reason} />
          </li>
        )}
        {bad.slice(0, LOOKS_SHOWN).map(({ node, tone, text, since }) => (
          <li key={node.id} className={styles.item}>
            <Shape tone={tone} />
            <span className="grow">
              <b>{node.name}</b> <span className="second">{text}</span>
            </span>
            <Since text={since} now={now} />
            <Link className="link" {...paths.nodes(cluster.name)}>
              Open nodes
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Since({ text, now }: { text: string | undefined; now: Date }) {
  const at = point(text);
  return at ? (
    <span className="third small">
      <Ago at={at} now={now} />
    </span>
  ) : null;
}

/** The last hour. */
interface History {
  points: ChartPoint[];
  gapMs: number;
}

interface RoomProps {
  title: string;
  history: History;
  usage: Usage;
  figure(number: number): string;
  pods?: boolean;
}

/** The requested share of the capacity of nodes. */
function Room({ title, usage: { taken, whole, percent }, figure, history, pods }: RoomProps) {
  const past = usePast();
  const known = taken !== undefined && whole !== undefined;
  const verb = pods ? "running or placed" : "reserved";
  const words = known ? `${figure(taken)} ${verb}` : "Not known yet";
  const room = pods ? "room for" : "allocatable";
  const used = past ? undefined : history.points.at(-1)?.used;
  const left = !known
    ? "Known once the nodes are read"
    : past
      ? "As last known"
      : `${figure(Math.max(0, whole - taken))} left for more pods${
          used == null ? "" : `, ${figure(used)} in use`
        }`;
  return (
    <Card
      title={title}
      aside={
        whole !== undefined && (
          <span className="third small">
            {pods ? `${room} ${figure(whole)}` : `${figure(whole)} ${room}`}
          </span>
        )
      }
    >
      <p className={styles.figure}>
        {percent !== undefined && <span className={styles.big}>{percentText(percent)}</span>}
        <span className="second">{words}</span>
      </p>
      <WideMeter
        percent={percent}
        label={known ? `${title}: ${words} of ${figure(whole)}` : `${title}: not known yet`}
      />
      <p className={styles.left}>{left}</p>
      <Chart {...history} label={`${title} in the last hour`} />
    </Card>
  );
}

function Nodes({ cluster }: { cluster: Cluster }) {
  const nodes = useQuery(nodesQuery(cluster.id));
  const few =
    nodes.data && nodes.data.length > 0 && nodes.data.length <= LINES_MAX ? nodes.data : undefined;
  return (
    <Card
      title="Nodes"
      flush={!!few}
      note={cluster.nodeCount != null && count(cluster.nodeCount)}
      aside={
        <Link className="link small" {...paths.nodes(cluster.name)}>
          List
        </Link>
      }
    >
      {few ? <NodeLines nodes={few} /> : <NodeTiles nodes={nodes.data} />}
    </Card>
  );
}

/** A handful of nodes by name. */
function NodeLines({ nodes }: { nodes: readonly Node[] }) {
  const past = usePast();
  return (
    <ul>
      {inOrder(nodes).map((node) => {
        const { taken, whole } = usage(node, "pods");
        return (
          <li key={node.id} className={styles.line}>
            <Shape tone={nodeTone(node)} />
            <span className="grow ellipsis">{node.name}</span>
            <span className={nodeTone(node) === "ok" && !past ? "hidden" : "second small"}>
              {past ? was(nodeWord(node)) : nodeWord(node)}
            </span>
            {taken !== undefined && whole !== undefined && (
              <span className="third small">
                {count(taken)} of {count(whole)} pods
              </span>
            )}
          </li>
        );
      })}
    </ul>
  );
}

/** The conditions of the connection, and the component statuses of the cluster. */
function Health({ cluster, now }: { cluster: Cluster; now: Date }) {
  const shown = new Set(["Connected", "Ready", "Updated"]);
  const conditions = explainAll(cluster).filter(({ type }) => shown.has(type));
  const parts = cluster.componentStatuses ?? [];
  const offline = usePast();
  const past = isPast(cluster) || offline;
  return (
    <Card
      title="Health"
      flush
      aside={
        <Link className="link small" {...paths.conditions(cluster.name)}>
          All conditions
        </Link>
      }
    >
      <ul>
        {conditions.map(({ type, title, tone, holds, observed, since }) => (
          <li key={type} className={styles.line}>
            <Past when={past && holds && observed}>
              <State tone={tone} named>
                {title}
              </State>
            </Past>
            <span className="grow" />
            <Since text={since} now={now} />
          </li>
        ))}
        {parts.map(({ name, conditions: said }) => {
          const healthy = said?.some(({ type, status }) => type === "Healthy" && status === "True");
          return (
            <li key={name} className={styles.line}>
              <Past when={past}>
                <State tone={healthy ? "ok" : "err"} named>
                  {name}
                </State>
              </Past>
              <span className="grow" />
              {past && healthy && <span className="third small">was healthy</span>}
              {!healthy && <span className="small">{said?.[0]?.message ?? "not healthy"}</span>}
            </li>
          );
        })}
      </ul>
    </Card>
  );
}

function Facts({ cluster, now }: { cluster: Cluster; now: Date }) {
  const offline = usePast();
  const heard = lastHeard(cluster);
  const created = point(cluster.created);
  const labels = ownLabels(cluster);
  const rows: [string, React.ReactNode][] = [
    ["Id", <code key="id">{cluster.id}</code>],
    ["Kubernetes", cluster.version?.gitVersion ?? "not known yet"],
    ["Provider", providerWord(cluster)],
    [
      isMadeByDriver(cluster) ? "API" : "API as the agent sees it",
      cluster.apiEndpoint ? <code key="api">{cluster.apiEndpoint}</code> : "not known yet",
    ],
    [
      "Agent",
      cluster.internal ? (
        "needs none"
      ) : offline ? (
        "not known"
      ) : heard === "live" ? (
        isTrue(cluster, "Connected") && "connected"
      ) : heard ? (
        <Ago key="heard" at={heard} now={now} />
      ) : (
        "never connected"
      ),
    ],
    ["Created", created ? <Ago key="created" at={created} now={now} /> : "—"],
    [
      "Labels",
      labels.length > 0 ? labels.map(([key, value]) => `${key}: ${value}`).join(", ") : "none",
    ],
  ];
  return (
    <Card title="Facts" flush>
      <dl className={styles.facts}>
        {rows.map(([name, value]) => (
          <div key={name} className={styles.line}>
            <dt className="second">{name}</dt>
            <dd className="ellipsis">{value}</dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}
