/** A page of objects as rows: state, name, what the cluster prints of them, age. */

import { IconArrowDown, IconArrowUp } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import type { KindList, KindObject } from "../../api/kinds.ts";
import { point } from "../../lib/time.ts";
import { paths } from "../../paths.ts";
import { useNarrow } from "../../ui/media.ts";
import { State } from "../../ui/StateMark.tsx";
import table from "../../ui/Table.module.css";
import { Ago, useNow } from "../../ui/Time.tsx";
import { useChosenColumns } from "./columns.ts";
import styles from "./Explorer.module.css";
import { cellText, objectTone, objectWord, type ShownColumn, shownColumns } from "./model.ts";
import type { KindSearch } from "./search.ts";

/** Interval of updates of relative times. */
const TICK_MS = 10_000;
const CREATED = "metadata.creationTimestamp";

type Sort = (field: string, descending: boolean) => void;

interface KindTableProps {
  cluster: string;
  type: string;
  text: string;
  list: KindList;
  /** Whether there is a column of namespaces. */
  isNamespaced: boolean;
  search: KindSearch;
  onSort: Sort;
  /** Which rows are selected; nothing: none can be. */
  selection?: RowSelection;
}

export interface RowSelection {
  ids: ReadonlySet<string>;
  onChange(ids: ReadonlySet<string>): void;
}

export function KindTable(props: KindTableProps) {
  const { cluster, type, text, list, isNamespaced, search, onSort, selection } = props;
  const now = useNow(TICK_MS);
  const narrow = useNarrow();
  const chosen = useChosenColumns(type);
  const columns = narrow ? [] : shownColumns(type, list.columns, chosen);
  const head = { search, onSort };
  return (
    <div className={table.frame}>
      <table className={`${table.table} ${styles.table}`} data-narrow={narrow || undefined}>
        <caption className="hidden">{text}</caption>
        <thead>
          <tr>
            {selection && (
              <th scope="col" className={styles.check}>
                <SelectAll selection={selection} ids={list.data.map(({ id }) => id)} />
              </th>
            )}
            <th scope="col" className={styles.state}>
              State
            </th>
            <SortHead {...head} field="metadata.name" text="Name" className={styles.wide} />
            {isNamespaced && !narrow && (
              <SortHead {...head} field="metadata.namespace" text="Namespace" />
            )}
            {columns.map(({ name, index, isNumber }) => (
              <SortHead
                key={index}
                {...head}
                field={`metadata.fields[${index}]`}
                text={name}
                right={isNumber}
              />
            ))}
            {!narrow && (
              <SortHead
                {...head}
                field={CREATED}
                text="Age"
                className={styles.age}
                right
                newFirst
              />
            )}
          </tr>
        </thead>
        <tbody>
          {list.data.map((object) => (
            <tr key={object.id}>
              {selection && (
                <td>
                  <input
                    type="checkbox"
                    aria-label={`Select ${object.id}`}
                    checked={selection.ids.has(object.id)}
                    onChange={() => selection.onChange(toggled(selection.ids, object.id))}
                  />
                </td>
              )}
              <Cells
                object={object}
                cluster={cluster}
                type={type}
                columns={columns}
                hasAge={!narrow}
                namespace={isNamespaced ? (narrow ? "below" : "column") : "none"}
                now={now}
              />
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface SelectAllProps {
  selection: RowSelection;
  /** Of the page. */
  ids: readonly string[];
}

function SelectAll({ selection: { ids: selected, onChange }, ids }: SelectAllProps) {
  const all = ids.length > 0 && ids.every((id) => selected.has(id));
  return (
    <input
      type="checkbox"
      aria-label="Select all of this page"
      checked={all}
      onChange={() => onChange(all ? new Set() : new Set(ids))}
    />
  );
}

function toggled(ids: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const changed = new Set(ids);
  if (!changed.delete(id)) changed.add(id);
  return changed;
}

interface CellsProps {
  object: KindObject;
  cluster: string;
  type: string;
  columns: readonly ShownColumn[];
  hasAge: boolean;
  /** Where the namespace is shown. */
  namespace: "column" | "below" | "none";
  now: Date;
}

function Cells({ object, cluster, type, columns, hasAge, namespace, now }: CellsProps) {
  const { metadata } = object;
  const created = point(metadata.creationTimestamp);
  return (
    <>
      <td title={metadata.state?.message || undefined}>
        <State tone={objectTone(object)}>{objectWord(object)}</State>
      </td>
      <td className="strong" title={metadata.name}>
        <Link className={styles.name} {...paths.kindObject(cluster, type, object.id)}>
          {metadata.name}
        </Link>
        {namespace === "below" && <div className={styles.below}>{metadata.namespace}</div>}
      </td>
      {namespace === "column" && <td className={table.quiet}>{metadata.namespace}</td>}
      {columns.map(({ index, isNumber }) => {
        const text = cellText(object, index);
        return (
          <td key={index} className={isNumber ? table.right : table.quiet} title={text}>
            {text}
          </td>
        );
      })}
      {hasAge && <td className={table.right}>{created ? <Ago at={created} now={now} /> : "—"}</td>}
    </>
  );
}

interface SortHeadProps {
  search: KindSearch;
  onSort: Sort;
  field: string;
  text: string;
  right?: boolean;
  className?: string | undefined;
  /** What is high is shown first: the newest, the most. */
  newFirst?: boolean;
}

function SortHead({ search, onSort, field, text, right, className, newFirst }: SortHeadProps) {
  const sorted = search.sort === field;
  const descending = search.descending ?? false;
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
        onClick={() => onSort(field, sorted ? !descending : (newFirst ?? false))}
      >
        {text}
        {sorted && <Arrow size={14} stroke={1.5} aria-hidden="true" />}
      </button>
    </th>
  );
}
