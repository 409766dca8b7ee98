/**
 * Clusters as rows. One that is not simply active has a second row with its reason and the next
 * step. Of many rows only those around the window are in the document; screen readers get the
 * total.
 */

import { IconChevronDown, IconChevronRight } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { Fragment, memo, useMemo } from "react";
import type { Cluster } from "../../api/types.ts";
import { monogram } from "../../lib/names.ts";
import { count } from "../../lib/quantity.ts";
import { paths } from "../../paths.ts";
import { Gap } from "../../ui/Gap.tsx";
import { Meter } from "../../ui/Meter.tsx";
import { useNarrow, useTight } from "../../ui/media.ts";
import { Past, usePast } from "../../ui/Past.tsx";
import { State } from "../../ui/StateMark.tsx";
import table from "../../ui/Table.module.css";
import { Monogram, Tag } from "../../ui/Tags.tsx";
import { Ago } from "../../ui/Time.tsx";
import { useVisibleRows, type VisibleRow } from "../../ui/useVisibleRows.ts";
import styles from "./ClusterTable.module.css";
import { COLUMNS, Head, type Sorting, type Width } from "./ClusterTableHead.tsx";
import {
  isPast,
  lastHeard,
  ownLabels,
  providerWord,
  type Reason,
  stateWord,
  toneOf,
  usage,
} from "./model.ts";
import { NextStepLink } from "./NextStepLink.tsx";
import { usePins } from "./pins.ts";
import { type TableRow, tableRows } from "./rows.ts";

/** More labels are in the tooltip. */
const LABELS_SHOWN = 2;

/** Columns after the reason, which are those of the figures and the last one. */
const AFTER_REASON: Record<Width, number> = { full: 4, tight: 4, narrow: 0 };

interface ClusterTableProps extends Sorting {
  clusters: readonly Cluster[];
  /** The label that it is grouped by. */
  label: string | undefined;
  /** In groups: needs attention, waiting, pinned, all others. */
  grouped: boolean;
  /** Waiting clusters are shown regardless of their number. */
  waitingShown: boolean;
  now: Date;
  onShowWaiting(shown: boolean): void;
}

/** Estimated height before a row is drawn, in pixels, as in the style sheet for a wide window. */
const HEIGHTS = { group: 28, cluster: 34, explained: 32, reason: 25 };

function heightOf(row: TableRow): number {
  return HEIGHTS[row.kind === "cluster" && row.explained ? "explained" : row.kind];
}

export function ClusterTable(props: ClusterTableProps) {
  const { clusters, label, grouped, waitingShown, now } = props;
  const pins = usePins();
  const narrow = useNarrow();
  const tight = useTight();
  const width = narrow ? "narrow" : tight ? "tight" : "full";
  const rows = useMemo(
    () => tableRows(clusters, { label, grouped, pins, waitingShown, now }),
    [clusters, label, grouped, pins, waitingShown, now],
  );
  const { visible, gapAfter, frame, measure, onFocus, onBlur } = useVisibleRows(rows, heightOf);
  return (
    <div ref={frame} className={`${table.frame} ${table.long}`}>
      <table
        className={`${table.table} ${styles.table}`}
        data-narrow={narrow || undefined}
        // The head counts as a row.
        aria-rowcount={rows.length + 1}
        onFocus={onFocus}
        onBlur={onBlur}
      >
        <caption className="hidden">Clusters</caption>
        <Head {...props} width={width} />
        {inBodies(visible).map(([group, members]) => (
          <tbody key={group}>
            {members.map(({ row, index, gap }) => (
              <Fragment key={row.key}>
                {gap > 0 && <Gap height={gap} columns={COLUMNS[width]} />}
                <Row
                  row={row}
                  index={index}
                  measure={measure}
                  width={width}
                  now={now}
                  onShowWaiting={props.onShowWaiting}
                />
              </Fragment>
            ))}
          </tbody>
        ))}
        {gapAfter > 0 && (
          <tbody>
            <Gap height={gapAfter} columns={COLUMNS[width]} />
          </tbody>
        )}
      </table>
    </div>
  );
}

/** Visible rows by group: each group is a body of its own, which the head of the group is about. */
function inBodies(visible: readonly VisibleRow<TableRow>[]): [string, VisibleRow<TableRow>[]][] {
  const bodies = new Map<string, VisibleRow<TableRow>[]>();
  for (const one of visible) {
    const { group } = one.row;
    bodies.set(group, [...(bodies.get(group) ?? []), one]);
  }
  return [...bodies];
}

interface RowProps {
  row: TableRow;
  index: number;
  measure(row: HTMLTableRowElement | null): void;
  width: Width;
  now: Date;
  onShowWaiting(shown: boolean): void;
}

function Row({ row, index, measure, width, now, onShowWaiting }: RowProps) {
  const place = { ref: measure, "data-index": index, "aria-rowindex": index + 2 };
  if (row.kind === "cluster") {
    const { cluster, explained } = row;
    return (
      <tr {...place} className={explained ? table.explained : ""} data-cluster={cluster.name}>
        <ClusterCells cluster={cluster} now={now} width={width} />
      </tr>
    );
  }
  if (row.kind === "reason") {
    return (
      <tr {...place} className={table.reason}>
        <ReasonCells cluster={row.cluster} reason={row.reason} width={width} />
      </tr>
    );
  }
  const { title, size, fold } = row;
  return (
    <tr {...place} className={table.group}>
      <th scope="rowgroup" colSpan={COLUMNS[width]}>
        {fold ? (
          <Fold title={title} size={size} open={fold === "open"} onToggle={onShowWaiting} />
        ) : (
          <>
            <b>{title}</b> {count(size)}
          </>
        )}
      </th>
    </tr>
  );
}

interface FoldProps {
  title: string;
  size: number;
  open: boolean;
  onToggle(open: boolean): void;
}

function Fold({ title, size, open, onToggle }: FoldProps) {
  const Chevron = open ? IconChevronDown : IconChevronRight;
  return (
    <button
      type="button"
      className={styles.fold}
      aria-expanded={open}
      onClick={() => onToggle(!open)}
    >
      <Chevron size={14} stroke={1.5} aria-hidden="true" />
      <b>{title}</b> {count(size)}
    </button>
  );
}

interface ClusterCellsProps {
  cluster: Cluster;
  now: Date;
  width: Width;
}

/** Most events change one cluster of many: the other rows are not rendered again. */
const ClusterCells = memo(function ClusterCells({ cluster, now, width }: ClusterCellsProps) {
  const unreachable = isPast(cluster);
  const right = [table.right, (usePast() || unreachable) && table.past].filter(Boolean).join(" ");
  return (
    <>
      <td>
        <State tone={toneOf(cluster)}>{stateWord(cluster)}</State>
      </td>
      <td>
        <span className={table.name}>
          {width !== "narrow" && <Monogram letters={monogram(cluster.name)} />}
          <Link {...paths.cluster(cluster.name)}>{cluster.name}</Link>
          {width !== "narrow" && <Labels cluster={cluster} />}
        </span>
      </td>
      {width === "full" && (
        <>
          <td className={table.quiet}>{providerWord(cluster)}</td>
          <td className={table.quiet}>{cluster.version?.gitVersion ?? "—"}</td>
        </>
      )}
      <td className={table.right}>
        <Figure value={cluster.nodeCount} />
      </td>
      {width !== "narrow" && (
        <Past when={unreachable}>
          <td className={right}>
            <Meter percent={usage(cluster, "cpu").percent} />
          </td>
          <td className={right}>
            <Meter percent={usage(cluster, "memory").percent} />
          </td>
          <td className={right}>
            <Figure value={usage(cluster, "pods").taken} />
          </td>
          <td className={table.right}>
            <Heard cluster={cluster} now={now} />
          </td>
        </Past>
      )}
    </>
  );
});

interface ReasonCellsProps {
  cluster: Cluster;
  reason: Reason;
  width: Width;
}

function ReasonCells({ cluster, reason, width }: ReasonCellsProps) {
  const after = AFTER_REASON[width];
  const past = usePast() || isPast(cluster);
  return (
    <>
      <td />
      <td colSpan={COLUMNS[width] - 1 - after}>
        <span className={styles.reason}>
          <span className={width === "narrow" ? undefined : "ellipsis"}>{reason.text}</span>
          <NextStepLink cluster={cluster} reason={reason} />
        </span>
      </td>
      {after > 0 && (
        <>
          <td colSpan={after - 1} className={past ? table.past : undefined} />
          <td />
        </>
      )}
    </>
  );
}

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

/** An absent value is “—”, zero is grey. */
function Figure({ value }: { value: number | null | undefined }) {
  const past = usePast();
  if (value == null) return <span className="third">—</span>;
  return <span className={value === 0 || past ? "third" : undefined}>{count(value)}</span>;
}

function Heard({ cluster, now }: { cluster: Cluster; now: Date }) {
  const offline = usePast() && !isPast(cluster);
  const heard = lastHeard(cluster);
  if (offline) return <span className="third">—</span>;
  if (heard === "live") return <span className="third">live</span>;
  if (!heard) return <span className="second">not yet</span>;
  return (
    <span className="strong">
      <Ago at={heard} now={now} />
    </span>
  );
}
