/**
 * Nodes as a map of tiles; nodes with problems differ by shape. The text beside it has the same
 * content.
 */

import type { Node } from "../../api/types.ts";
import { count } from "../../lib/quantity.ts";
import { Skeleton } from "../../ui/Notice.tsx";
import { usePast } from "../../ui/Past.tsx";
import styles from "./NodeTiles.module.css";
import { inOrder, NODE_TONE_WORDS, nodeTally, nodeTone } from "./nodes.ts";

/** Maximum number of tiles; the list has all nodes. */
const TILES_MAX = 512;

export function NodeTiles({ nodes }: { nodes: Node[] | undefined }) {
  const past = usePast();
  if (!nodes && past) return <p className="second">Not read before that.</p>;
  if (!nodes) return <Skeleton rows={2} what="nodes" />;
  if (nodes.length === 0) {
    return <p className="second">No nodes{past ? " were known" : " so far"}.</p>;
  }
  const tally = nodeTally(nodes);
  const known = past ? "nodes, as last known" : "nodes";
  const words = tally.map(([tone, number]) => `${count(number)} ${NODE_TONE_WORDS[tone]}`);
  return (
    <>
      <div
        className={styles.tiles}
        data-past={past || undefined}
        data-large={nodes.length <= 60 || undefined}
        role="img"
        aria-label={`${count(nodes.length)} ${known}: ${words.join(", ")}`}
      >
        {inOrder(nodes)
          .slice(0, TILES_MAX)
          .map((node) => (
            <i key={node.id} className={styles.tile} data-tone={nodeTone(node)} title={node.name} />
          ))}
      </div>
      <ul className={styles.legend} data-past={past || undefined}>
        {tally.map(([tone, number]) => (
          <li key={tone}>
            <i className={styles.tile} data-tone={tone} />
            {count(number)} {NODE_TONE_WORDS[tone]}
          </li>
        ))}
      </ul>
    </>
  );
}
