/** The objects of one kind in a cluster: filtered and sorted by the server, read as they are scrolled. */

import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useRouter } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { ApiError, sentence } from "../../api/errors.ts";
import { useKindFeed } from "../../api/freshness.ts";
import {
  isBeingRead,
  type KindList,
  type KindObject,
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
import { isFiltered, type KindSearch, type KindSearchChange } from "./search.ts";
import { type KindRows, useKindRows } from "./useKindRows.ts";

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
  const { head: list, rows, page, onWindow } = useKindRows(cluster.id, type, search);
  useKindFeed(cluster.id, type, list.data?.revision);
  const text = kindText(type, schema);
  const [creating, setCreating] = useState(false);
  const { ids, selected, select } = useSelection(rows);
  const denial = schema?.collectionMethods?.includes("POST")
    ? undefined
    : `Your roles in ${cluster.name} do not let you create ${text}.`;
  const change = (next: KindSearchChange) => {
    // Another list begins at its first page.
    const merged = { ...search, page: undefined, ...next };
    const present = Object.entries(merged).filter(([, value]) => value);
    void navigate(paths.kind(cluster.name, type, Object.fromEntries(present)));
  };
  useAddressOf(page, search, (place) => paths.kind(cluster.name, type, place));
  useTop(type, search);
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
        {list.data && list.data.count > PAGE_SIZE && (
          <span className="second">{place(page, list.data.count)}</span>
        )}
        {list.data && !narrow && <ColumnsMenu type={type} columns={list.data.columns} />}
      </Filters>
      {list.isPending && isBeingRead(list.failureReason) && (
        <Notice tone="run" title={`${text} are read for the first time.`}>
          There are many: this takes a while, once. They show as soon as they are here.
        </Notice>
      )}
      {list.isPending && <Skeleton rows={10} what={text} />}
      <ReadFailure error={list.error} text={text} onRetry={() => void list.refetch()} />
      {list.data && rows.count > 0 && (
        <Past when={isPast(cluster)}>
          <KindTable
            cluster={cluster.name}
            type={type}
            text={text}
            columns={list.data.columns}
            rows={rows}
            start={((search.page ?? 1) - 1) * PAGE_SIZE}
            onWindow={onWindow}
            isNamespaced={isNamespaced && !search.namespace}
            search={search}
            onSort={(sort, descending) => change({ sort, descending })}
            selection={{ ids, onChange: select }}
          />
        </Past>
      )}
      {list.data?.count === 0 && (
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
          onClear={() => select(new Set())}
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

/** Which rows are selected; they stay so when they leave the window. */
function useSelection({ loaded }: KindRows) {
  const [chosen, setChosen] = useState<ReadonlyMap<string, KindObject>>(new Map());
  const current = new Map(loaded.map((object) => [object.id, object]));
  const select = (ids: ReadonlySet<string>) => {
    const objects = [...ids].flatMap((id) => current.get(id) ?? chosen.get(id) ?? []);
    setChosen(new Map(objects.map((object) => [object.id, object])));
  };
  const selected = [...chosen.values()].map((object) => current.get(object.id) ?? object);
  return { ids: new Set(chosen.keys()), selected, select };
}

/** Keeps the page at the top of the window in the address. */
function useAddressOf(
  page: number,
  search: KindSearch,
  pathOf: (search: KindSearch) => ReturnType<typeof paths.kind>,
): void {
  const router = useRouter();
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when the window moved.
  useEffect(() => {
    if (page === (search.page ?? 1)) return;
    // Who is on the way to another list or page is not led back.
    if (router.state.resolvedLocation?.href !== router.latestLocation.href) return;
    const { page: _, ...content } = search;
    const place = pathOf(page > 1 ? { ...content, page } : content);
    void router.navigate({ ...place, replace: true, resetScroll: false });
  }, [page]);
}

/** Another list, or another order of it, is seen from its top. */
function useTop(type: string, { page: _, ...content }: KindSearch): void {
  const list = JSON.stringify([type, content]);
  const before = useRef(list);
  useEffect(() => {
    if (before.current === list) return;
    before.current = list;
    document.querySelector("main")?.scrollTo({ top: 0 });
  }, [list]);
}

/** Where in a long list the window is. */
function place(page: number, all: number): string {
  const first = (page - 1) * PAGE_SIZE + 1;
  return `${count(first)}–${count(Math.min(all, first + PAGE_SIZE - 1))} of ${count(all)}`;
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
