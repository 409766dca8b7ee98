/** The heads of the columns of the list of clusters: most sort. */

import { IconArrowDown, IconArrowUp } from "@tabler/icons-react";
import table from "../../ui/Table.module.css";
import styles from "./ClusterTable.module.css";
import type { SortKey } from "./model.ts";

/** `full`: all columns. `tight`: without the two least important. `narrow`: state, name, nodes. */
export type Width = "full" | "tight" | "narrow";
export const COLUMNS: Record<Width, number> = { full: 9, tight: 7, narrow: 3 };

export interface Sorting {
  sort: SortKey;
  descending: boolean;
  onSort(sort: SortKey, descending: boolean): void;
}

export function Head(props: Sorting & { width: Width }) {
  const { width } = props;
  return (
    <thead>
      <tr aria-rowindex={1}>
        <SortHead {...props} name="state" className={styles.state} text="State" />
        <SortHead {...props} name="name" text="Cluster" />
        {width === "full" && (
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
        {width !== "narrow" && (
          <>
            <SortHead {...props} name="cpu" className={styles.meter} text="CPU reserved" right />
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
  );
}

interface SortHeadProps extends Sorting {
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
