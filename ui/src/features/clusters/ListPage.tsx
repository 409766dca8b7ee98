/** Home: every cluster with its live state; the ones that need a look first, each with its reason. */

import { IconLock, IconPlus, IconSearch, IconServer2 } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useRef } from "react";
import { sentence } from "../../api/errors.ts";
import { clustersQuery } from "../../api/queries.ts";
import type { Cluster } from "../../api/types.ts";
import { count } from "../../lib/quantity.ts";
import { paths } from "../../paths.ts";
import { Button } from "../../ui/Button.tsx";
import { useShortcut } from "../../ui/keyboard.ts";
import { Blank, Notice, Skeleton } from "../../ui/Notice.tsx";
import { Page, PageHead } from "../../ui/Page.tsx";
import { usePast } from "../../ui/Past.tsx";
import { Shape } from "../../ui/StateMark.tsx";
import { Key } from "../../ui/Tags.tsx";
import { useNow } from "../../ui/Time.tsx";
import { ClusterTable } from "./ClusterTable.tsx";
import { ImportDenied } from "./ImportDenied.tsx";
import { ImportDialog } from "./ImportDialog.tsx";
import styles from "./ListPage.module.css";
import { matches, sorted, TONE_WORDS, tally, toneOf } from "./model.ts";
import { useImportDenial } from "./rights.ts";
import type { ClusterSearch } from "./search.ts";

/** How often relative times move on. */
const TICK_MS = 10_000;

export function ListPage({ search }: { search: ClusterSearch }) {
  const navigate = useNavigate();
  const clusters = useQuery(clustersQuery);
  const now = useNow(TICK_MS);
  const denial = useImportDenial();
  const offline = usePast();
  const change = (next: Partial<Record<keyof ClusterSearch, unknown>>, replace = false) => {
    const merged = { ...search, ...next };
    const kept = Object.entries(merged).filter(([, value]) => value !== undefined && value !== "");
    void navigate({ ...paths.clusters(Object.fromEntries(kept)), replace });
  };
  const openImport = () => change({ import: "new" });
  const all = useMemo(() => clusters.data ?? [], [clusters.data]);
  const found = useMemo(
    () => (search.q ? all.filter((cluster) => matches(cluster, search.q ?? "")) : all),
    [all, search.q],
  );
  const shown = useMemo(() => {
    const chosen = search.state ? found.filter((c) => toneOf(c) === search.state) : found;
    return sorted(chosen, search.sort ?? "state", search.descending ?? false);
  }, [found, search.state, search.sort, search.descending]);
  return (
    <Page title="Clusters">
      <PageHead
        title="Clusters"
        facts={clusters.data && facts(all)}
        actions={
          <Button kind={denial ? "plain" : "primary"} deniedBecause={denial} onClick={openImport}>
            {!denial && <IconPlus size={16} stroke={1.5} />}
            Import cluster
          </Button>
        }
      />
      <FilterBar search={search} clusters={found} onChange={change} />
      {clusters.isError && !offline && (
        <Notice
          tone="err"
          title="The list of clusters could not be read."
          actions={
            <Button small onClick={() => clusters.refetch()}>
              Try again
            </Button>
          }
        >
          {sentence(clusters.error)}
          {clusters.data && " Below: the list as it was."}
        </Notice>
      )}
      <div className={styles.list}>
        {clusters.isPending && <Skeleton rows={6} what="clusters" />}
        {clusters.data && shown.length > 0 && (
          <ClusterTable
            clusters={shown}
            grouped={!search.sort && !search.q && !search.state}
            waitingShown={search.waiting ?? false}
            sort={search.sort ?? "state"}
            descending={search.descending ?? false}
            now={now}
            onSort={(sort, descending) =>
              change({
                sort: sort === "state" ? undefined : sort,
                descending: descending || undefined,
              })
            }
            onShowWaiting={(shown) => change({ waiting: shown || undefined }, true)}
          />
        )}
        {clusters.data && shown.length === 0 && (
          <Nothing
            search={search}
            total={all.length}
            denial={denial}
            onChange={change}
            onImport={openImport}
          />
        )}
        {clusters.data && onlyLocal(all) && !search.q && !search.state && !denial && (
          <Blank
            icon={<IconServer2 size={20} stroke={1.5} />}
            title="No cluster of yours so far"
            actions={
              <Button onClick={openImport}>
                <IconPlus size={16} stroke={1.5} />
                Import the first one
              </Button>
            }
          >
            Import one that runs already: one command, nothing of it is changed.
          </Blank>
        )}
      </div>
      {search.import === "new" && denial && (
        <ImportDenied denial={denial} onClose={() => change({ import: undefined }, true)} />
      )}
      {search.import && !(search.import === "new" && denial) && (
        <ImportDialog
          clusterId={search.import}
          clusters={all}
          onClose={() => change({ import: undefined }, true)}
          onCreated={(id) => change({ import: id }, true)}
        />
      )}
    </Page>
  );
}

function facts(clusters: readonly Cluster[]): string {
  const nodes = clusters.reduce((sum, cluster) => sum + (cluster.nodeCount ?? 0), 0);
  const words = [
    `${count(clusters.length)} ${clusters.length === 1 ? "cluster" : "clusters"}`,
    `${count(nodes)} ${nodes === 1 ? "node" : "nodes"}`,
  ];
  return words.join(", ");
}

function onlyLocal(clusters: readonly Cluster[]): boolean {
  return clusters.length > 0 && clusters.every((cluster) => cluster.internal);
}

type Change = (next: Partial<Record<keyof ClusterSearch, unknown>>, replace?: boolean) => void;

interface FilterBarProps {
  search: ClusterSearch;
  /** Within the text filter. */
  clusters: readonly Cluster[];
  onChange: Change;
}

function FilterBar({ search, clusters, onChange }: FilterBarProps) {
  const input = useRef<HTMLInputElement>(null);
  useShortcut("/", () => input.current?.focus());
  const tones = tally(clusters);
  if (search.state && !tones.some(([tone]) => tone === search.state)) tones.push([search.state, 0]);
  return (
    <search className={styles.bar}>
      <label className={styles.filter}>
        <IconSearch size={16} stroke={1.5} />
        <span className="hidden">Filter clusters</span>
        <input
          ref={input}
          value={search.q ?? ""}
          placeholder="Filter by name, label, version"
          spellCheck={false}
          onChange={(event) => onChange({ q: event.target.value || undefined }, true)}
          onKeyDown={(event) => {
            if (event.key === "Escape") onChange({ q: undefined }, true);
          }}
        />
        <Key>/</Key>
      </label>
      <fieldset className={styles.chips}>
        <legend className="hidden">Filter by state</legend>
        <button
          type="button"
          className={styles.chip}
          aria-pressed={!search.state}
          onClick={() => onChange({ state: undefined })}
        >
          All <b>{count(clusters.length)}</b>
        </button>
        {tones.map(([tone, number]) => (
          <button
            key={tone}
            type="button"
            className={styles.chip}
            aria-pressed={search.state === tone}
            onClick={() => onChange({ state: search.state === tone ? undefined : tone })}
          >
            <Shape tone={tone} />
            {TONE_WORDS[tone]} <b>{count(number)}</b>
          </button>
        ))}
      </fieldset>
    </search>
  );
}

interface NothingProps {
  search: ClusterSearch;
  total: number;
  /** Why the user may not import clusters. */
  denial: string | undefined;
  onChange: Change;
  onImport(): void;
}

/** Nothing to show: because there is nothing, or because of a filter, and then of which. */
function Nothing({ search, total, denial, onChange, onImport }: NothingProps) {
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
