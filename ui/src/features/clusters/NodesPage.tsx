/**
 * A cluster's nodes as its agent reports them. Of many rows only those around the window are in the
 * document; screen readers get the total.
 */

import { IconServer2 } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Fragment, memo, useMemo, useState } from "react";
import { sentence } from "../../api/errors.ts";
import { useNodeUse } from "../../api/metrics.ts";
import { nodesQuery } from "../../api/queries.ts";
import type { Cluster, Node } from "../../api/types.ts";
import { bytes, cores, count } from "../../lib/quantity.ts";
import { paths } from "../../paths.ts";
import { Button } from "../../ui/Button.tsx";
import { Gap } from "../../ui/Gap.tsx";
import { Meter } from "../../ui/Meter.tsx";
import { useNarrow, useWide } from "../../ui/media.ts";
import { Blank, Notice, Skeleton } from "../../ui/Notice.tsx";
import { Page } from "../../ui/Page.tsx";
import { Past, usePast } from "../../ui/Past.tsx";
import { State } from "../../ui/StateMark.tsx";
import table from "../../ui/Table.module.css";
import { useVisibleRows } from "../../ui/useVisibleRows.ts";
import { ClusterHead, useCluster } from "./ClusterPage.tsx";
import { DrainDialog } from "./DrainDialog.tsx";
import { isPast, reasonOf, usage } from "./model.ts";
import { NextStepLink } from "./NextStepLink.tsx";
import { DeleteNodeDialog, NodeMenu } from "./NodeMenu.tsx";
import styles from "./NodesPage.module.css";
import { inOrder, nodeReason, nodeTone, nodeWord, roles } from "./nodes.ts";
import { useNodeDenial } from "./rights.ts";

/** Columns of the table: names and pods, those that fit most windows, or all. */
type Width = "narrow" | "usual" | "wide";
const COLUMNS: Record<Width, number> = { narrow: 4, usual: 9, wide: 10 };

function useWidth(): Width {
  const wide = useWide();
  return useNarrow() ? "narrow" : wide ? "wide" : "usual";
}

export function NodesPage() {
  const cluster = useCluster();
  const nodes = useQuery(nodesQuery(cluster.id));
  const reason = reasonOf(cluster, new Date());
  return (
    <Page title={`Nodes of ${cluster.name}`}>
      <ClusterHead page="Nodes" />
      {nodes.isPending && <Skeleton rows={6} what={`nodes of ${cluster.name}`} />}
      {nodes.isError && (
        <Notice
          tone="err"
          title="The nodes could not be read."
          actions={
            <Button small onClick={() => nodes.refetch()}>
              Try again
            </Button>
          }
        >
          {sentence(nodes.error)}
        </Notice>
      )}
      {nodes.data && nodes.data.length > 0 && (
        <Past when={isPast(cluster)}>
          <NodeTable cluster={cluster} nodes={nodes.data} />
        </Past>
      )}
      {nodes.data?.length === 0 && (
        <Blank
          icon={<IconServer2 size={20} stroke={1.5} />}
          title={cluster.internal ? "The management API has no nodes" : "No nodes so far"}
          actions={reason && <NextStepLink cluster={cluster} reason={reason} />}
        >
          {cluster.internal
            ? "It stores objects; it runs no pods."
            : "They show as soon as the cluster's agent is connected."}
        </Blank>
      )}
    </Page>
  );
}

/** A node, or why the one above it is not simply ready. */
interface NodeTableRow {
  key: string;
  node: Node;
  reason: string | undefined;
  kind: "node" | "reason";
}

function nodeRows(nodes: readonly Node[]): NodeTableRow[] {
  return inOrder(nodes).flatMap((node): NodeTableRow[] => {
    const reason = nodeReason(node);
    const row: NodeTableRow = { key: node.id, node, reason, kind: "node" };
    return reason ? [row, { ...row, key: `${node.id} reason`, kind: "reason" }] : [row];
  });
}

/** Estimated height before a row is drawn, in pixels, as in the style sheet. */
const HEIGHTS = { node: 34, explained: 32, reason: 25 };

function heightOf({ kind, reason }: NodeTableRow): number {
  return HEIGHTS[kind === "node" && reason ? "explained" : kind];
}

function NodeTable({ cluster, nodes }: { cluster: Cluster; nodes: Node[] }) {
  const width = useWidth();
  const denial = useNodeDenial(cluster, nodes);
  const uses = useNodeUse(cluster.id, !isPast(cluster));
  const [draining, setDraining] = useState<Node>();
  const [leaving, setLeaving] = useState<Node>();
  const rows = useMemo(() => nodeRows(nodes), [nodes]);
  const { visible, gapAfter, frame, measure, onFocus, onBlur } = useVisibleRows(rows, heightOf);
  const columns = COLUMNS[width];
  return (
    <div ref={frame} className={table.frame}>
      {draining && <DrainDialog node={draining} onClose={() => setDraining(undefined)} />}
      {leaving && <DeleteNodeDialog node={leaving} onClose={() => setLeaving(undefined)} />}
      <table
        className={`${table.table} ${styles.table}`}
        data-width={width}
        // The head counts as a row.
        aria-rowcount={rows.length + 1}
        onFocus={onFocus}
        onBlur={onBlur}
      >
        <caption className="hidden">Nodes</caption>
        <Head width={width} />
        <tbody>
          {visible.map(({ row, index, gap }) => (
            <Fragment key={row.key}>
              {gap > 0 && <Gap height={gap} columns={columns} />}
              <tr
                ref={measure}
                data-index={index}
                aria-rowindex={index + 2}
                className={row.kind === "reason" ? table.reason : row.reason && table.explained}
              >
                {row.kind === "reason" ? (
                  <>
                    <td />
                    <td colSpan={columns - 1} className={styles.reason}>
                      {row.reason}
                    </td>
                  </>
                ) : (
                  <NodeCells
                    cluster={cluster.name}
                    node={row.node}
                    cpuUsed={uses.get(nodeNameOf(row.node))?.cpu}
                    memoryUsed={uses.get(nodeNameOf(row.node))?.memory}
                    width={width}
                    denial={denial}
                    onDrain={setDraining}
                    onDelete={setLeaving}
                  />
                )}
              </tr>
            </Fragment>
          ))}
          {gapAfter > 0 && <Gap height={gapAfter} columns={columns} />}
        </tbody>
      </table>
    </div>
  );
}

function Head({ width }: { width: Width }) {
  return (
    <thead>
      <tr>
        <th scope="col" className={styles.state}>
          State
        </th>
        <th scope="col">Node</th>
        {width !== "narrow" && (
          <>
            <th scope="col" className={styles.roles}>
              Roles
            </th>
            <th scope="col" className={styles.version}>
              Kubelet
            </th>
            <th scope="col" className={styles.address}>
              Address
            </th>
            {width === "wide" && (
              <th scope="col" className={styles.system}>
                System
              </th>
            )}
            <th scope="col" className={`${styles.meter} ${table.right}`}>
              CPU reserved
            </th>
            <th scope="col" className={`${styles.meter} ${table.right}`}>
              Memory reserved
            </th>
          </>
        )}
        <th scope="col" className={`${styles.pods} ${table.right}`}>
          Pods
        </th>
        <th scope="col" className={styles.more}>
          <span className="hidden">Actions</span>
        </th>
      </tr>
    </thead>
  );
}

interface NodeCellsProps {
  /** The cluster's name. */
  cluster: string;
  node: Node;
  /** Cores; nothing where it is not measured. */
  cpuUsed: number | undefined;
  /** Bytes. */
  memoryUsed: number | undefined;
  width: Width;
  denial: string | undefined;
  onDrain(node: Node): void;
  onDelete(node: Node): void;
}

/** Most events change one node of many: the other rows are not rendered again. */
const NodeCells = memo(function NodeCells({
  cluster,
  node,
  cpuUsed,
  memoryUsed,
  width,
  denial,
  onDrain,
  onDelete,
}: NodeCellsProps) {
  const past = usePast();
  const right = [table.right, past && table.past].filter(Boolean).join(" ");
  const pods = usage(node, "pods").taken;
  return (
    <>
      <td>
        <State tone={nodeTone(node)}>{nodeWord(node)}</State>
      </td>
      <td className="strong" title={node.name}>
        <Link className={styles.link} {...paths.kindObject(cluster, "nodes", nodeNameOf(node))}>
          {node.name}
        </Link>
      </td>
      {width !== "narrow" && (
        <>
          <td className={table.quiet}>{roles(node)}</td>
          <td className={table.quiet}>{node.info?.kubernetes?.kubeletVersion || "—"}</td>
          <td className={`${table.quiet} mono`}>{node.ipAddress || "—"}</td>
          {width === "wide" && (
            <td className={table.quiet} title={node.info?.os?.operatingSystem}>
              {node.info?.os?.operatingSystem || "—"}
            </td>
          )}
          <td className={right} title={inUse(cpuUsed, cores)}>
            <Meter percent={usage(node, "cpu").percent} />
          </td>
          <td className={right} title={inUse(memoryUsed, bytes)}>
            <Meter percent={usage(node, "memory").percent} />
          </td>
        </>
      )}
      <td className={right}>{pods === undefined ? "—" : count(pods)}</td>
      <td className={`${table.right} ${styles.menu}`}>
        <NodeMenu node={node} denial={denial} onDrain={onDrain} onDelete={onDelete} />
      </td>
    </>
  );
});

/** Its name in the cluster. */
function nodeNameOf(node: Node): string {
  return node.nodeName || node.name;
}

function inUse(amount: number | undefined, figure: (amount: number) => string) {
  return amount === undefined ? undefined : `${figure(amount)} in use`;
}
