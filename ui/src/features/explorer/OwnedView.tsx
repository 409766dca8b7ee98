/** The objects that belong to a workload: its pods, or the jobs of a CronJob. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { sentence } from "../../api/errors.ts";
import { useKindFeed } from "../../api/freshness.ts";
import { kindListQuery, PAGE_SIZE } from "../../api/kinds.ts";
import { count } from "../../lib/quantity.ts";
import { Blank, Notice, Skeleton } from "../../ui/Notice.tsx";
import { useCluster } from "../clusters/ClusterPage.tsx";
import { KindTable } from "./KindTable.tsx";
import type { KindSearch } from "./search.ts";
import { allRows } from "./useKindRows.ts";

interface OwnedViewProps {
  /** The plural of what is listed. */
  type: "pods" | "batch.jobs";
  text: string;
  namespace: string;
  /** What selects them: a part of the query of the list. */
  selection: Record<string, string>;
}

export function OwnedView({ type, text, namespace, selection }: OwnedViewProps) {
  const cluster = useCluster();
  const [search, setSearch] = useState<KindSearch>({});
  const query = new URLSearchParams({
    ...selection,
    ...(search.sort ? { sort: `${search.descending ? "-" : ""}${search.sort}` } : {}),
    pagesize: String(PAGE_SIZE),
    exclude: "metadata.managedFields",
  });
  const below = `/${encodeURIComponent(namespace)}?${query}`;
  const list = useQuery({
    ...kindListQuery(cluster.id, type, below),
    placeholderData: keepPreviousData,
  });
  useKindFeed(cluster.id, type, list.data?.revision, { namespace });
  if (list.isPending) return <Skeleton rows={4} what={text} />;
  if (list.isError) {
    return (
      <Notice tone="err" title={`Its ${text.toLowerCase()} could not be read.`}>
        {sentence(list.error)}
      </Notice>
    );
  }
  if (list.data.data.length === 0) {
    return <Blank title={`No ${text.toLowerCase()}`}>They show as soon as there are some.</Blank>;
  }
  const more = list.data.count - list.data.data.length;
  return (
    <>
      <KindTable
        cluster={cluster.name}
        type={type}
        text={text}
        columns={list.data.columns}
        rows={allRows(list.data)}
        isNamespaced={false}
        search={search}
        onSort={(sort, descending) => setSearch({ sort, descending })}
      />
      {more > 0 && <p className="second">{count(more)} more are in the list of all.</p>}
    </>
  );
}
