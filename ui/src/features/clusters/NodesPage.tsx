/** A cluster's nodes as its agent tells them. */

import { IconServer2 } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Fragment, memo, useState } from "react";
import { sentence } from "../../api/errors.ts";
import { nodesQuery } from "../../api/queries.ts";
import type { Cluster, Node } from "../../api/types.ts";
import { count } from "../../lib/quantity.ts";
import { Button } from "../../ui/Button.tsx";
import { Meter } from "../../ui/Meter.tsx";
import { useNarrow } from "../../ui/media.ts";
import { Blank, Notice, Skeleton } from "../../ui/Notice.tsx";
import { Page } from "../../ui/Page.tsx";
import { Past, usePast } from "../../ui/Past.tsx";
import { State } from "../../ui/StateMark.tsx";
import table from "../../ui/Table.module.css";
import { ClusterHead, useCluster } from "./ClusterPage.tsx";
import { isPast, reasonOf, usage } from "./model.ts";
import { NextStepLink } from "./NextStepLink.tsx";
import { DeleteNodeDialog, NodeMenu } from "./NodeMenu.tsx";
import styles from "./NodesPage.module.css";
import { inOrder, nodeReason, nodeTone, nodeWord, roles } from "./nodes.ts";
import { useNodeDenial } from "./rights.ts";

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
          <NodeTable cluster={cluster} nodes={inOrder(nodes.data)} />
        </Past>
      )}
      {nodes.data?.length === 0 && (
        <Blank
          icon={<IconServer2 size={20} stroke={1.5} />}
          title={cluster.internal ? "The management API has no nodes" : "No nodes so far"}
          actions={reason && <NextStepLink cluster={cluster} reason={reason} />}
        >
          {cluster.internal
            ? "It keeps objects; it runs no pods."
            : "They show as soon as the cluster's agent is connected."}
        </Blank>
      )}
    </Page>
  );
}

function NodeTable({ cluster, nodes }: { cluster: Cluster; nodes: Node[] }) {
  const narrow = useNarrow();
  const denial = useNodeDenial(cluster, nodes);
  const [leaving, setLeaving] = useState<Node>();
  return (
    <div className={table.frame}>
      {leaving && <DeleteNodeDialog node={leaving} onClose={() => setLeaving(undefined)} />}
      <table className={`${table.table} ${styles.table}`} data-narrow={narrow || undefined}>
        <caption className="hidden">Nodes</caption>
        <thead>
          <tr>
            <th scope="col" className={styles.state}>
              State
            </th>
            <th scope="col">Node</th>
            {!narrow && (
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
                <th scope="col" className={styles.system}>
                  System
                </th>
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
        <tbody>
          {nodes.map((node) => (
            <NodeRow
              key={node.id}
              node={node}
              narrow={narrow}
              denial={denial}
              onDelete={setLeaving}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface NodeRowProps {
  node: Node;
  narrow: boolean;
  denial: string | undefined;
  onDelete(node: Node): void;
}

/** Most events change one node of many: the other rows stay as they are. */
const NodeRow = memo(function NodeRow({ node, narrow, denial, onDelete }: NodeRowProps) {
  const past = usePast();
  const right = [table.right, past && table.past].filter(Boolean).join(" ");
  const reason = nodeReason(node);
  const pods = usage(node, "pods").taken;
  return (
    <Fragment>
      <tr className={reason && table.explained}>
        <td>
          <State tone={nodeTone(node)}>{nodeWord(node)}</State>
        </td>
        <td className="strong">{node.name}</td>
        {!narrow && (
          <>
            <td className={table.quiet}>{roles(node)}</td>
            <td className={table.quiet}>{node.info?.kubernetes?.kubeletVersion || "—"}</td>
            <td className={`${table.quiet} mono`}>{node.ipAddress || "—"}</td>
            <td className={table.quiet}>{node.info?.os?.operatingSystem || "—"}</td>
            <td className={right}>
              <Meter percent={usage(node, "cpu").percent} />
            </td>
            <td className={right}>
              <Meter percent={usage(node, "memory").percent} />
            </td>
          </>
        )}
        <td className={right}>{pods === undefined ? "—" : count(pods)}</td>
        <td className={`${table.right} ${styles.menu}`}>
          <NodeMenu node={node} denial={denial} onDelete={onDelete} />
        </td>
      </tr>
      {reason && (
        <tr className={table.reason}>
          <td />
          <td colSpan={narrow ? 3 : 9}>{reason}</td>
        </tr>
      )}
    </Fragment>
  );
});
