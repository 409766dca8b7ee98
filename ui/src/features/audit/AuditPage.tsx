/** The audit log: who did what, from where, and with which result; of all clusters, or of one. */

import { IconHistory, IconRefresh } from "@tabler/icons-react";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { ApiError, sentence } from "../../api/errors.ts";
import { auditQuery, clustersQuery } from "../../api/queries.ts";
import { paths } from "../../paths.ts";
import { Button } from "../../ui/Button.tsx";
import { Blank, Notice, Skeleton } from "../../ui/Notice.tsx";
import { Page, PageHead } from "../../ui/Page.tsx";
import { ClusterHead, useCluster } from "../clusters/ClusterPage.tsx";
import styles from "./AuditPage.module.css";
import { EventTable } from "./EventTable.tsx";
import { type AuditKind, type AuditSearch, auditQueryString, KINDS } from "./search.ts";

const ALL_KINDS = Object.keys(KINDS) as AuditKind[];

type ChangeSearch = (search: AuditSearch) => void;

/** All events: for administrators. */
export function AuditPage({ search }: { search: AuditSearch }) {
  const navigate = useNavigate();
  const { data: clusters = [] } = useQuery(clustersQuery);
  const nameOf = (id: string) => clusters.find((cluster) => cluster.id === id)?.name ?? id;
  return (
    <Page title="Audit log">
      <PageHead
        title="Audit log"
        facts="Logins, refusals, and requests to Drover and to clusters"
      />
      <Events
        search={search}
        nameOf={nameOf}
        refusal="Administrators read it. Owners of a cluster find its events on the cluster’s own audit page."
        onChange={(next) => void navigate(paths.audit(next))}
      />
    </Page>
  );
}

/** Events of one cluster: also for its owners. */
export function ClusterAuditPage({ search }: { search: AuditSearch }) {
  const navigate = useNavigate();
  const cluster = useCluster();
  return (
    <Page title={`Audit log of ${cluster.name}`}>
      <ClusterHead page="Audit log" />
      <Events
        search={search}
        clusterId={cluster.id}
        refusal={`Owners of ${cluster.name} and administrators read it. Ask one of them for the role cluster-owner.`}
        onChange={(next) => void navigate(paths.clusterAudit(cluster.name, next))}
      />
    </Page>
  );
}

interface EventsProps {
  search: AuditSearch;
  clusterId?: string;
  /** Absent: all events are of one cluster. */
  nameOf?: (clusterId: string) => string;
  /** Who may read these events, for users who may not. */
  refusal: string;
  onChange: ChangeSearch;
}

function Events({ search, clusterId, nameOf, refusal, onChange }: EventsProps) {
  const found = useInfiniteQuery(auditQuery(auditQueryString(search, clusterId)));
  const events = found.data?.pages.flatMap((page) => page.data) ?? [];
  const older = (
    <Button
      disabledBecause={found.isFetchingNextPage ? "Older events are being read." : undefined}
      onClick={() => void found.fetchNextPage()}
    >
      {found.isFetchingNextPage ? "Reading…" : "Show older events"}
    </Button>
  );
  if (found.error instanceof ApiError && found.error.isForbidden) {
    return (
      <Notice tone="off" title="You may not read these events.">
        {refusal}
      </Notice>
    );
  }
  return (
    <>
      <Filters
        search={search}
        kinds={clusterId ? ["all", "refused", "clusters"] : ALL_KINDS}
        onChange={onChange}
        onRefresh={() => void found.refetch()}
      />
      {found.isPending && <Skeleton rows={8} what="the audit log" />}
      {found.isError && (
        <Notice
          tone="err"
          title="The audit log could not be read."
          actions={
            <Button small onClick={() => void found.refetch()}>
              Try again
            </Button>
          }
        >
          {sentence(found.error)}
        </Notice>
      )}
      {events.length > 0 && <EventTable events={events} nameOf={nameOf} />}
      {events.length > 0 && found.hasNextPage && <div className={styles.more}>{older}</div>}
      {found.data && events.length === 0 && (
        <Blank
          icon={<IconHistory size={20} stroke={1.5} />}
          title={found.hasNextPage ? "No such event so far" : "No such event in the log"}
          actions={found.hasNextPage && older}
        >
          {found.hasNextPage
            ? "The newest part of the log was searched; older events may match."
            : "Try fewer filters. Old events are removed with their files."}
        </Blank>
      )}
    </>
  );
}

interface FiltersProps {
  search: AuditSearch;
  /** That there are events of. */
  kinds: readonly AuditKind[];
  onChange: ChangeSearch;
  onRefresh(): void;
}

function Filters({ search, kinds, onChange, onRefresh }: FiltersProps) {
  const { kind: chosen = "all", user, from } = search;
  const change = (next: AuditSearch) => {
    const merged = { ...search, ...next };
    onChange(Object.fromEntries(Object.entries(merged).filter(([, value]) => value)));
  };
  return (
    <search className={styles.bar}>
      <Text name="User name or id" value={user} onSubmit={(user) => change({ user })} />
      <Text name="IP address" value={from} onSubmit={(from) => change({ from })} />
      <fieldset className={styles.chips}>
        <legend className="hidden">Filter by what happened</legend>
        {kinds.map((kind) => (
          <button
            key={kind}
            type="button"
            className={styles.chip}
            aria-pressed={kind === chosen}
            onClick={() => {
              const { kind: _, ...rest } = search;
              onChange(kind === "all" ? rest : { ...rest, kind });
            }}
          >
            {KINDS[kind].text}
          </button>
        ))}
      </fieldset>
      <span className="grow" />
      <Button onClick={onRefresh}>
        <IconRefresh size={16} stroke={1.5} />
        Refresh
      </Button>
    </search>
  );
}

interface TextProps {
  name: string;
  value: string | undefined;
  onSubmit(value: string): void;
}

/** The filter is applied to the complete text: on Enter, and on leaving the field. */
function Text({ name, value = "", onSubmit }: TextProps) {
  const submit = ({ currentTarget }: { currentTarget: HTMLInputElement }) => {
    const text = currentTarget.value.trim();
    if (text !== value) onSubmit(text);
  };
  return (
    <input
      // The text follows the address.
      key={value}
      className={styles.filter}
      aria-label={`Filter by ${name}`}
      placeholder={name}
      defaultValue={value}
      spellCheck={false}
      onBlur={submit}
      onKeyDown={(event) => {
        if (event.key === "Enter") submit(event);
        if (event.key === "Escape") onSubmit("");
      }}
    />
  );
}
