/**
 * Home: every cluster with its live state; those that need attention first, each with its reason.
 */

import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { driversQuery } from "../../api/drivers.ts";
import { sentence } from "../../api/errors.ts";
import { clustersQuery } from "../../api/queries.ts";
import type { Cluster } from "../../api/types.ts";
import { count } from "../../lib/quantity.ts";
import { paths } from "../../paths.ts";
import { Button } from "../../ui/Button.tsx";
import { Notice, Skeleton } from "../../ui/Notice.tsx";
import { Page, PageHead } from "../../ui/Page.tsx";
import { usePast } from "../../ui/Past.tsx";
import { useNow } from "../../ui/Time.tsx";
import { CreateDialog } from "../provisioning/CreateDialog.tsx";
import { usableDrivers } from "../provisioning/model.ts";
import { ClusterTable } from "./ClusterTable.tsx";
import { FilterBar } from "./FilterBar.tsx";
import { FirstSteps } from "./FirstSteps.tsx";
import { ImportDenied } from "./ImportDenied.tsx";
import { ImportDialog } from "./ImportDialog.tsx";
import styles from "./ListPage.module.css";
import { matches, sorted, toneOf } from "./model.ts";
import { NoClusters, onlyLocal } from "./NoClusters.tsx";
import { useImportDenial } from "./rights.ts";
import { groupLabels } from "./rows.ts";
import type { ClusterSearch, SearchChange } from "./search.ts";

/** Interval of updates of relative times. */
const TICK_MS = 10_000;

export function ListPage({ search }: { search: ClusterSearch }) {
  const clusters = useQuery(clustersQuery);
  const denial = useImportDenial();
  const change = useSearchChange(search);
  const openImport = () => change({ import: "new" });
  const all = useMemo(() => clusters.data ?? [], [clusters.data]);
  const found = useMemo(
    () => (search.q ? all.filter((cluster) => matches(cluster, search.q ?? "")) : all),
    [all, search.q],
  );
  const isFiltered = !!search.q || !!search.state;
  return (
    <Page title="Clusters">
      <PageHead
        title="Clusters"
        facts={clusters.data && facts(all)}
        actions={
          <>
            <CreateButton denial={denial} />
            <Button kind={denial ? "plain" : "primary"} deniedBecause={denial} onClick={openImport}>
              {!denial && <IconPlus size={16} stroke={1.5} />}
              Import cluster
            </Button>
          </>
        }
      />
      <FilterBar
        search={search}
        clusters={found}
        labels={useMemo(() => groupLabels(all), [all])}
        onChange={change}
      />
      <ReadFailure />
      <div className={styles.list}>
        {clusters.isPending && <Skeleton rows={6} what="clusters" />}
        {clusters.data && (
          <List search={search} found={found} onChange={change}>
            <NoClusters
              search={search}
              total={all.length}
              denial={denial}
              onChange={change}
              onImport={openImport}
            />
          </List>
        )}
      </div>
      {clusters.data && onlyLocal(all) && !isFiltered && !denial && (
        <FirstSteps onImport={openImport} />
      )}
      <Import search={search} clusters={all} denial={denial} onChange={change} />
    </Page>
  );
}

/** Only where there is a driver to create clusters with. */
function CreateButton({ denial }: { denial: string | undefined }) {
  const drivers = useQuery(driversQuery);
  const [creating, setCreating] = useState(false);
  if (usableDrivers(drivers.data ?? []).length === 0) return null;
  return (
    <>
      <Button deniedBecause={denial} onClick={() => setCreating(true)}>
        Create cluster…
      </Button>
      {creating && <CreateDialog onClose={() => setCreating(false)} />}
    </>
  );
}

/** Changes the part of the page's state that is in its address. */
function useSearchChange(search: ClusterSearch): SearchChange {
  const navigate = useNavigate();
  return (next, replace = false) => {
    const merged = { ...search, ...next };
    const present = Object.entries(merged).filter(
      ([, value]) => value !== undefined && value !== "",
    );
    void navigate({ ...paths.clusters(Object.fromEntries(present)), replace });
  };
}

/**
 * The error that the list could not be read, unless the page already shows that the server does not
 * respond.
 */
function ReadFailure() {
  const clusters = useQuery(clustersQuery);
  const offline = usePast();
  if (!clusters.isError || offline) return null;
  return (
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
  );
}

interface ListProps {
  search: ClusterSearch;
  /** Within the text filter. */
  found: readonly Cluster[];
  onChange: SearchChange;
  /** When no cluster is left. */
  children: React.ReactNode;
}

function List({ search, found, onChange, children }: ListProps) {
  const now = useNow(TICK_MS);
  const shown = useMemo(() => {
    const chosen = search.state ? found.filter((c) => toneOf(c) === search.state) : found;
    return sorted(chosen, search.sort ?? "state", search.descending ?? false);
  }, [found, search.state, search.sort, search.descending]);
  if (shown.length === 0) return children;
  return (
    <ClusterTable
      clusters={shown}
      label={search.group}
      grouped={!search.sort && !search.q && !search.state}
      waitingShown={search.waiting ?? false}
      sort={search.sort ?? "state"}
      descending={search.descending ?? false}
      now={now}
      onSort={(sort, descending) =>
        onChange({
          sort: sort === "state" ? undefined : sort,
          descending: descending || undefined,
        })
      }
      onShowWaiting={(shown) => onChange({ waiting: shown || undefined }, true)}
    />
  );
}

interface ImportProps {
  search: ClusterSearch;
  clusters: readonly Cluster[];
  /** Why the user may not import clusters. */
  denial: string | undefined;
  onChange: SearchChange;
}

/** The dialog of the address. */
function Import({ search, clusters, denial, onChange }: ImportProps) {
  const close = () => onChange({ import: undefined }, true);
  if (!search.import) return null;
  if (search.import === "new" && denial) return <ImportDenied denial={denial} onClose={close} />;
  return (
    <ImportDialog
      clusterId={search.import}
      clusters={clusters}
      onClose={close}
      onCreated={(id) => onChange({ import: id }, true)}
    />
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
