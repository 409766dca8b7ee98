/** Shown instead of clusters: why there are none, and what helps. */

import { IconLock, IconPlus, IconServer2 } from "@tabler/icons-react";
import type { Cluster } from "../../api/types.ts";
import { count } from "../../lib/quantity.ts";
import { Button } from "../../ui/Button.tsx";
import { Blank } from "../../ui/Notice.tsx";
import { TONE_WORDS } from "./model.ts";
import type { ClusterSearch, SearchChange } from "./search.ts";

interface NoClustersProps {
  search: ClusterSearch;
  total: number;
  /** Why the user may not import clusters. */
  denial: string | undefined;
  onChange: SearchChange;
  onImport(): void;
}

/** The message on an empty list: no clusters, or which filter hides them. */
export function NoClusters({ search, total, denial, onChange, onImport }: NoClustersProps) {
  if (total === 0 && denial) {
    return (
      <Blank icon={<IconLock size={20} stroke={1.5} />} title="No clusters that you may see">
        You have no role on any cluster. Owners of a cluster and administrators give roles. {denial}
      </Blank>
    );
  }
  if (total === 0) {
    return (
      <Blank
        icon={<IconServer2 size={20} stroke={1.5} />}
        title="No clusters that you may see"
        actions={
          <Button onClick={onImport}>
            <IconPlus size={16} stroke={1.5} />
            Import cluster
          </Button>
        }
      >
        Import one that runs already, or ask the owner of a cluster for a role on it.
      </Blank>
    );
  }
  const filters = [
    search.q && `“${search.q}”`,
    search.state && `the state ${TONE_WORDS[search.state]}`,
  ].filter(Boolean);
  return (
    <Blank
      title={`None of ${count(total)} clusters match`}
      actions={
        <Button onClick={() => onChange({ q: undefined, state: undefined })}>
          {filters.length > 1 ? "Drop both filters" : "Drop that filter"}
        </Button>
      }
    >
      Without {filters.join(" and ")} it would be {count(total)}.
    </Blank>
  );
}

/** Whether there is none but the management API itself, which always exists. */
export function onlyLocal(clusters: readonly Cluster[]): boolean {
  return clusters.length > 0 && clusters.every((cluster) => cluster.internal);
}
