/** The objects of one kind in a cluster: filtered, sorted and cut into pages by the server. */

import { IconChevronLeft, IconChevronRight, IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { ApiError, sentence } from "../../api/errors.ts";
import { useKindFeed } from "../../api/freshness.ts";
import {
  isBeingRead,
  type KindList,
  kindListQuery,
  kindsQuery,
  namespacesQuery,
  PAGE_SIZE,
} from "../../api/kinds.ts";
import { count } from "../../lib/quantity.ts";
import { paths } from "../../paths.ts";
import { Button } from "../../ui/Button.tsx";
import { useNarrow } from "../../ui/media.ts";
import { Blank, Notice, Skeleton } from "../../ui/Notice.tsx";
import { Page, PageHead } from "../../ui/Page.tsx";
import { Past, usePast } from "../../ui/Past.tsx";
import { useCluster } from "../clusters/ClusterPage.tsx";
import { isPast } from "../clusters/model.ts";
import { UnavailableNotice } from "../clusters/UnavailableNotice.tsx";
import { ColumnsMenu } from "./ColumnsMenu.tsx";
import { CreateDialog } from "./CreateDialog.tsx";
import styles from "./Explorer.module.css";
import { KindTable } from "./KindTable.tsx";
import { kindText, schemaOf } from "./model.ts";
import { SelectionBar } from "./SelectionBar.tsx";
import { belowKind, isFiltered, type KindSearch, type KindSearchChange } from "./search.ts";

interface KindPageProps {
  /** Its plural or id, from the address. */
  type: string;
  search: KindSearch;
}

export function KindPage({ type, search }: KindPageProps) {
  const cluster = useCluster();
  const narrow = useNarrow();
  const navigate = useNavigate();
  const kinds = useQuery(kindsQuery(cluster.id));
  const schema = schemaOf(kinds.data ?? [], type);
  const isNamespaced = schema?.attributes.namespaced ?? true;
  const list = useQuery(kindListQuery(cluster.id, type, belowKind(search)));
  useKindFeed(cluster.id, type, list.data?.revision);
  const text = kindText(type, schema);
  const [creating, setCreating] = useState(false);
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  // What is no longer on the page is no longer selected.
  const selected = (list.data?.data ?? []).filter(({ id }) => ids.has(id));
  const denial = schema?.collectionMethods?.includes("POST")
    ? undefined
    : `Your roles in ${cluster.name} do not let you create ${text}.`;
  const change = (next: KindSearchChange) => {
    // Another list begins at its first page.
    const merged = { ...search, page: undefined, ...next };
    const present = Object.entries(merged).filter(([, value]) => value);
    void navigate(paths.kind(cluster.name, type, Object.fromEntries(present)));
  };
  return (
    <Page title={`${text} of ${cluster.name}`}>
      <PageHead
        title={text}
        facts={list.data && facts(list.data, search)}
        actions={
          schema && (
            <Button deniedBecause={denial} onClick={() => setCreating(true)}>
              {!denial && <IconPlus size={16} stroke={1.5} />}
              Create
            </Button>
          )
        }
      />
      <UnavailableNotice cluster={cluster} />
      <Filters search={search} isNamespaced={isNamespaced} onChange={change}>
        {list.data && !narrow && <ColumnsMenu type={type} columns={list.data.columns} />}
      </Filters>
      {list.isPending && isBeingRead(list.failureReason) && (
        <Notice tone="run" title={`${text} are read for the first time.`}>
          There are many: this takes a while, once. They show as soon as they are here.
        </Notice>
      )}
      {list.isPending && <Skeleton rows={10} what={text} />}
      <ReadFailure error={list.error} text={text} onRetry={() => void list.refetch()} />
      {list.data && list.data.data.length > 0 && (
        <Past when={isPast(cluster)}>
          <KindTable
            cluster={cluster.name}
            type={type}
            text={text}
            list={list.data}
            isNamespaced={isNamespaced && !search.namespace}
            search={search}
            onSort={(sort, descending) => change({ sort, descending })}
            selection={{ ids, onChange: setIds }}
          />
        </Past>
      )}
      {list.data && <Pages list={list.data} search={search} onChange={change} />}
      {list.data?.data.length === 0 && (
        <Blank
          title={isFiltered(search) ? "Nothing matches" : `There are no ${text} here`}
          actions={
            isFiltered(search) && (
              <Button onClick={() => change({ q: undefined, namespace: undefined })}>
                Show all
              </Button>
            )
          }
        >
          {isFiltered(search)
            ? "Try fewer letters, or all namespaces."
            : "They show as soon as somebody creates one that you may see."}
        </Blank>
      )}
      {selected.length > 0 && (
        <SelectionBar
          cluster={cluster}
          type={type}
          text={text}
          selected={selected}
          onClear={() => setIds(new Set())}
        />
      )}
      {creating && schema && (
        <CreateDialog
          schema={schema}
          namespace={search.namespace}
          onClose={() => setCreating(false)}
        />
      )}
    </Page>
  );
}

function facts({ count: number }: KindList, search: KindSearch): string {
  return isFiltered(search) ? `${count(number)} match` : count(number);
}

interface ReadFailureProps {
  error: Error | null;
  text: string;
  onRetry(): void;
}

function ReadFailure({ error, text, onRetry }: ReadFailureProps) {
  const offline = usePast();
  if (!error || offline) return null;
  if (error instanceof ApiError && error.isForbidden) {
    return (
      <Notice tone="off" title={`You may not list ${text} here.`}>
        {sentence(error)}
      </Notice>
    );
  }
  return (
    <Notice
      tone="err"
      title={`${text} could not be read.`}
      actions={
        <Button small onClick={onRetry}>
          Try again
        </Button>
      }
    >
      {sentence(error)}
    </Notice>
  );
}

interface FiltersProps {
  search: KindSearch;
  isNamespaced: boolean;
  onChange(change: KindSearchChange): void;
  children: React.ReactNode;
}

function Filters({ search, isNamespaced, onChange, children }: FiltersProps) {
  const cluster = useCluster();
  const { data: namespaces = [] } = useQuery({
    ...namespacesQuery(cluster.id),
    enabled: isNamespaced,
  });
  const chosen = search.namespace ?? "";
  // One that the address names may be none that the user sees.
  const offered = namespaces.includes(chosen) || !chosen ? namespaces : [chosen, ...namespaces];
  return (
    <search className={styles.bar}>
      <input
        // The text follows the address.
        key={search.q}
        className={styles.filter}
        aria-label="Filter by name"
        placeholder="Part of the name"
        defaultValue={search.q}
        spellCheck={false}
        onBlur={({ currentTarget: { value } }) => {
          if (value !== (search.q ?? "")) onChange({ q: value });
        }}
        onKeyDown={({ key, currentTarget: { value } }) => {
          if (key === "Enter") onChange({ q: value });
          if (key === "Escape") onChange({ q: undefined });
        }}
      />
      {isNamespaced && (
        <select
          className={styles.filter}
          aria-label="Namespace"
          value={chosen}
          onChange={(event) => onChange({ namespace: event.target.value })}
        >
          <option value="">All namespaces</option>
          {offered.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      )}
      <span className="grow" />
      {children}
    </search>
  );
}

interface PagesProps {
  list: KindList;
  search: KindSearch;
  onChange(change: KindSearchChange): void;
}

function Pages({ list, search, onChange }: PagesProps) {
  const page = search.page ?? 1;
  const pages = list.pages ?? 1;
  if (pages <= 1 && page === 1) return null;
  const first = (page - 1) * PAGE_SIZE + 1;
  const last = first + list.data.length - 1;
  const to = (next: number) => onChange({ page: next });
  return (
    <nav className={styles.pages} aria-label="Pages">
      <Button
        small
        disabledBecause={page > 1 ? undefined : "This is the first page."}
        onClick={() => to(page - 1)}
      >
        <IconChevronLeft size={16} stroke={1.5} aria-hidden="true" />
        Previous
      </Button>
      <span className="second">
        {list.data.length > 0 ? `${count(first)}–${count(last)} of ${count(list.count)}` : "Empty"}
      </span>
      <Button
        small
        disabledBecause={page < pages ? undefined : "This is the last page."}
        onClick={() => to(page + 1)}
      >
        Next
        <IconChevronRight size={16} stroke={1.5} aria-hidden="true" />
      </Button>
    </nav>
  );
}
