/** Clusters as rows. A row that is not simply active has a second line with its reason and the next step. */

import { IconArrowDown, IconArrowUp } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { Fragment, memo } from "react";
import type { Cluster } from "../../api/types.ts";
import { monogram } from "../../lib/names.ts";
import { count } from "../../lib/quantity.ts";
import { paths } from "../../paths.ts";
import { Meter } from "../../ui/Meter.tsx";
import { useNarrow } from "../../ui/media.ts";
import { State } from "../../ui/StateMark.tsx";
import table from "../../ui/Table.module.css";
import { Monogram, Tag } from "../../ui/Tags.tsx";
import { Ago } from "../../ui/Time.tsx";
import styles from "./ClusterTable.module.css";
import {
  isPast,
  lastHeard,
  ownLabels,
  providerWord,
  reasonOf,
  type SortKey,
  stateWord,
  toneOf,
  usage,
} from "./model.ts";
import { NextStepLink } from "./NextStepLink.tsx";
import { usePins } from "./pins.ts";

/** More labels are in the tooltip. */
const LABELS_SHOWN = 2;

interface ClusterTableProps {
  clusters: readonly Cluster[];
  /** In groups: what needs a look, what is pinned, all others. */
  grouped: boolean;
  sort: SortKey;
  descending: boolean;
  now: Date;
  onSort(sort: SortKey, descending: boolean): void;
}

export function ClusterTable(props: ClusterTableProps) {
  const pins = usePins();
  const narrow = useNarrow();
  const groups = props.grouped ? inGroups(props.clusters, pins) : [["", props.clusters] as const];
  const rows = (clusters: readonly Cluster[]) =>
    clusters.map((cluster) => (
      <ClusterRow key={cluster.id} cluster={cluster} now={props.now} narrow={narrow} />
    ));
  return (
    <div className={table.frame}>
      <table className={`${table.table} ${styles.table}`} data-narrow={narrow || undefined}>
        <caption className="hidden">Clusters</caption>
        <thead>
          <tr>
            <SortHead {...props} name="state" className={styles.state} text="State" />
            <SortHead {...props} name="name" text="Cluster" />
            {!narrow && (
              <>
                <th scope="col" className={styles.provider}>
                  Provider
                </th>
                <th scope="col" className={styles.version}>
                  Kubernetes
                </th>
              </>
            )}
            <SortHead {...props} name="nodes" className={styles.nodes} text="Nodes" right />
            {!narrow && (
              <>
                <SortHead
                  {...props}
                  name="cpu"
                  className={styles.meter}
                  text="CPU reserved"
                  right
                />
                <SortHead
                  {...props}
                  name="memory"
                  className={styles.meter}
                  text="Memory reserved"
                  right
                />
                <SortHead {...props} name="pods" className={styles.pods} text="Pods" right />
                <th scope="col" className={`${styles.heard} ${table.right}`}>
                  Last heard
                </th>
              </>
            )}
          </tr>
        </thead>
        {groups.map(([title, clusters]) => (
          <tbody key={title}>
            {title && (
              <tr className={table.group}>
                <th scope="rowgroup" colSpan={narrow ? 3 : 9}>
                  <b>{title}</b> {count(clusters.length)}
                </th>
              </tr>
            )}
            {rows(clusters)}
          </tbody>
        ))}
      </table>
    </div>
  );
}

function inGroups(clusters: readonly Cluster[], pins: readonly string[]) {
  const looks = clusters.filter((cluster) => toneOf(cluster) !== "ok");
  const healthy = clusters.filter((cluster) => toneOf(cluster) === "ok");
  const pinned = healthy.filter(({ id }) => pins.includes(id));
  const others = healthy.filter(({ id }) => !pins.includes(id));
  const groups = [
    ["Needs a look", looks],
    ["Pinned", pinned],
    [looks.length + pinned.length > 0 ? "All others" : "All", others],
  ] as const;
  return groups.filter(([, members]) => members.length > 0);
}

interface SortHeadProps extends ClusterTableProps {
  name: SortKey;
  text: string;
  right?: boolean;
  className?: string | undefined;
}

function SortHead(props: SortHeadProps) {
  const { name, text, right, className, sort, descending, onSort } = props;
  const sorted = sort === name;
  const Arrow = descending ? IconArrowDown : IconArrowUp;
  const order = sorted ? ({ "aria-sort": descending ? "descending" : "ascending" } as const) : {};
  return (
    <th
      scope="col"
      className={[className, right && table.right].filter(Boolean).join(" ")}
      {...order}
    >
      <button
        type="button"
        className={table.sort}
        onClick={() => onSort(name, sorted ? !descending : !!right)}
      >
        {text}
        {sorted && <Arrow size={14} stroke={1.5} aria-hidden="true" />}
      </button>
    </th>
  );
}

interface ClusterRowProps {
  cluster: Cluster;
  now: Date;
  narrow: boolean;
}

/** Most events change one cluster of many: the other rows stay as they are. */
const ClusterRow = memo(function ClusterRow({ cluster, now, narrow }: ClusterRowProps) {
  const reason = reasonOf(cluster, now);
  const past = isPast(cluster) ? table.past : undefined;
  const right = [table.right, past].filter(Boolean).join(" ");
  const pods = usage(cluster, "pods");
  return (
    <Fragment>
      <tr className={reason && table.explained} data-cluster={cluster.name}>
        <td>
          <State tone={toneOf(cluster)}>{stateWord(cluster)}</State>
        </td>
        <td>
          <span className={table.name}>
            {!narrow && <Monogram letters={monogram(cluster.name)} />}
            <Link {...paths.cluster(cluster.name)}>{cluster.name}</Link>
            {!narrow && <Labels cluster={cluster} />}
          </span>
        </td>
        {!narrow && (
          <>
            <td className={table.quiet}>{providerWord(cluster)}</td>
            <td className={table.quiet}>{cluster.version?.gitVersion ?? "—"}</td>
          </>
        )}
        <td className={table.right}>
          <Figure value={cluster.nodeCount} />
        </td>
        {!narrow && (
          <>
            <td className={right}>
              <Meter percent={usage(cluster, "cpu").percent} />
            </td>
            <td className={right}>
              <Meter percent={usage(cluster, "memory").percent} />
            </td>
            <td className={right}>
              <Figure value={pods.taken} />
            </td>
            <td className={table.right}>
              <Heard cluster={cluster} now={now} />
            </td>
          </>
        )}
      </tr>
      {reason && (
        <tr className={table.reason}>
          <td />
          <td colSpan={narrow ? 2 : 4}>
            <span className={styles.reason}>
              <span className={narrow ? undefined : "ellipsis"}>{reason.text}</span>
              <NextStepLink cluster={cluster} reason={reason} />
            </span>
          </td>
          {!narrow && (
            <>
              <td className={past} />
              <td className={past} />
              <td className={past} />
              <td />
            </>
          )}
        </tr>
      )}
    </Fragment>
  );
});

function Labels({ cluster }: { cluster: Cluster }) {
  const labels = ownLabels(cluster);
  if (labels.length === 0) return null;
  const all = labels.map(([key, value]) => `${key}: ${value}`).join("\n");
  return (
    <span className={styles.labels} title={all}>
      {labels.slice(0, LABELS_SHOWN).map(([key, value]) => (
        <Tag key={key}>{value || key}</Tag>
      ))}
    </span>
  );
}

/** Absent is “—”, zero is grey. */
function Figure({ value }: { value: number | null | undefined }) {
  if (value == null) return <span className="third">—</span>;
  return <span className={value === 0 ? "third" : undefined}>{count(value)}</span>;
}

function Heard({ cluster, now }: { cluster: Cluster; now: Date }) {
  const heard = lastHeard(cluster);
  if (heard === "live") return <span className="third">live</span>;
  if (!heard) return <span className="second">not yet</span>;
  return (
    <span className="strong">
      <Ago at={heard} now={now} />
    </span>
  );
}
