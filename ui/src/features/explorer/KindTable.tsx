/** Objects as rows: state, name, what the cluster prints of them, age. */

import { IconArrowDown, IconArrowUp } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { useEffect, useLayoutEffect, useState } from "react";
import type { KindColumn, KindObject } from "../../api/kinds.ts";
import { count } from "../../lib/quantity.ts";
import { point } from "../../lib/time.ts";
import { paths } from "../../paths.ts";
import { useDensity } from "../../ui/density.ts";
import { Gap } from "../../ui/Gap.tsx";
import { useNarrow } from "../../ui/media.ts";
import { State } from "../../ui/StateMark.tsx";
import table from "../../ui/Table.module.css";
import { Ago, useNow } from "../../ui/Time.tsx";
import { focusedIndex, useVisibleIndexes } from "../../ui/useVisibleRows.ts";
import { useChosenColumns } from "./columns.ts";
import styles from "./Explorer.module.css";
import { cellText, objectTone, objectWord, type ShownColumn, shownColumns } from "./model.ts";
import type { KindSearch } from "./search.ts";
import type { KindRows } from "./useKindRows.ts";

/** Interval of updates of relative times. */
const TICK_MS = 10_000;
/** Height of a row until one is drawn, in pixels. */
const ROW_HEIGHT = 34;
const CREATED = "metadata.creationTimestamp";

type Sort = (field: string, descending: boolean) => void;

interface KindTableProps {
  cluster: string;
  type: string;
  text: string;
  columns: readonly KindColumn[];
  rows: KindRows;
  /** Whether there is a column of namespaces. */
  isNamespaced: boolean;
  search: KindSearch;
  onSort: Sort;
  /** Which rows are selected; nothing: none can be. */
  selection?: RowSelection;
  /** The row at the top of the window at first. */
  start?: number;
  /** Called with the first and the last row in the window. */
  onWindow?: (first: number, last: number) => void;
}

export interface RowSelection {
  ids: ReadonlySet<string>;
  onChange(ids: ReadonlySet<string>): void;
}

export function KindTable(props: KindTableProps) {
  const { cluster, type, text, rows, isNamespaced, search, onSort, selection } = props;
  const now = useNow(TICK_MS);
  const narrow = useNarrow();
  const chosen = useChosenColumns(type);
  const columns = narrow ? [] : shownColumns(type, props.columns, chosen);
  const head = { search, onSort };
  const { visible, gapAfter, frame, onFocus, onBlur } = useKindWindow(props, narrow);
  const width =
    columns.length + 2 + (selection ? 1 : 0) + (narrow ? 0 : 1 + (isNamespaced ? 1 : 0));
  return (
    <div className={table.frame} ref={frame}>
      <table
        className={`${table.table} ${styles.table}`}
        data-narrow={narrow || undefined}
        aria-rowcount={rows.count + 1}
        onFocus={onFocus}
        onBlur={onBlur}
      >
        <caption className="hidden">{text}</caption>
        <thead>
          <tr>
            {selection && (
              <th scope="col" className={styles.check}>
                <SelectAll selection={selection} ids={rows.loaded.map(({ id }) => id)} />
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
          {visible.flatMap(({ index, gap }) => {
            const object = rows.at(index);
            const space = gap > 0 && <Gap key={`before ${index}`} height={gap} columns={width} />;
            const place = { "data-index": index, "aria-rowindex": index + 2 };
            if (!object) {
              return [
                space,
                <tr key={`row ${index}`} {...place} aria-busy="true">
                  <td colSpan={width} className={table.quiet}>
                    …
                  </td>
                </tr>,
              ];
            }
            return [
              space,
              <tr
                key={object.id}
                {...place}
                data-selected={selection?.ids.has(object.id) || undefined}
              >
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
              </tr>,
            ];
          })}
          {gapAfter > 0 && <Gap height={gapAfter} columns={width} />}
        </tbody>
      </table>
    </div>
  );
}

/** Which rows are in the document, and what the page is told about it. */
function useKindWindow({ rows, start = 0, onWindow }: KindTableProps, narrow: boolean) {
  const density = useDensity();
  const [height, setHeight] = useState(ROW_HEIGHT);
  const [focused, setFocused] = useState(-1);
  const { visible, gapAfter, frame, window, forgetHeights } = useVisibleIndexes({
    count: rows.count,
    heightOf: () => height,
    focused,
    start,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: what the height of rows follows.
  useLayoutEffect(() => {
    const drawn = frame.current?.querySelector("tr[data-index]:not([aria-busy])");
    if (drawn) setHeight(drawn.getBoundingClientRect().height);
  }, [narrow, density, rows.loaded.length > 0]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new function each time.
  useLayoutEffect(() => forgetHeights(), [height]);
  const { first, last } = window;
  useEffect(() => onWindow?.(first, last), [onWindow, first, last]);
  const onFocus = (event: React.FocusEvent) => setFocused(focusedIndex(event));
  return { visible, gapAfter, frame, onFocus, onBlur: () => setFocused(-1) };
}

interface SelectAllProps {
  selection: RowSelection;
  /** Of the rows that are read. */
  ids: readonly string[];
}

function SelectAll({ selection: { ids: selected, onChange }, ids }: SelectAllProps) {
  const all = ids.length > 0 && ids.every((id) => selected.has(id));
  return (
    <input
      type="checkbox"
      aria-label={`Select the ${count(ids.length)} rows that are read`}
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
