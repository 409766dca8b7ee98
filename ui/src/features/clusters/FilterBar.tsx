/** Filters of the list of clusters: a text, and states with their numbers. */

import { IconSearch } from "@tabler/icons-react";
import { useRef } from "react";
import type { Cluster } from "../../api/types.ts";
import { count } from "../../lib/quantity.ts";
import { useShortcut } from "../../ui/keyboard.ts";
import { Shape } from "../../ui/StateMark.tsx";
import { Key } from "../../ui/Tags.tsx";
import styles from "./ListPage.module.css";
import { TONE_WORDS, tally } from "./model.ts";
import type { ClusterSearch, SearchChange } from "./search.ts";

interface FilterBarProps {
  search: ClusterSearch;
  /** Within the text filter. */
  clusters: readonly Cluster[];
  /** Labels that the list can be grouped by. */
  labels: readonly string[];
  onChange: SearchChange;
}

export function FilterBar({ search, clusters, labels, onChange }: FilterBarProps) {
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
      {(labels.length > 0 || search.group) && (
        <>
          <span className="grow" />
          <select
            className={styles.group}
            aria-label="Group by"
            value={search.group ?? ""}
            onChange={(event) => onChange({ group: event.target.value || undefined })}
          >
            <option value="">Group by state</option>
            {[...new Set([...labels, ...(search.group ? [search.group] : [])])].map((label) => (
              <option key={label} value={label}>
                Group by {label}
              </option>
            ))}
          </select>
        </>
      )}
    </search>
  );
}
