/** Chooses the columns of a list. */

import { IconColumns3 } from "@tabler/icons-react";
import { useRef } from "react";
import type { KindColumn } from "../../api/kinds.ts";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { chooseColumns, useChosenColumns } from "./columns.ts";
import styles from "./Explorer.module.css";
import { offeredColumns, shownColumns } from "./model.ts";

interface ColumnsMenuProps {
  type: string;
  columns: readonly KindColumn[];
}

export function ColumnsMenu({ type, columns }: ColumnsMenuProps) {
  const chosen = useChosenColumns(type);
  const details = useRef<HTMLDetailsElement>(null);
  const offered = offeredColumns(type, columns).map(({ name }) => name);
  const shown = shownColumns(type, columns, chosen).map(({ name }) => name);
  if (offered.length === 0) return null;
  const close = () => {
    if (details.current) details.current.open = false;
  };
  return (
    <details
      ref={details}
      className={styles.columns}
      onKeyDown={({ key }) => {
        if (key !== "Escape") return;
        close();
        details.current?.querySelector("summary")?.focus();
      }}
      onBlur={({ relatedTarget }) => {
        if (relatedTarget && !details.current?.contains(relatedTarget)) close();
      }}
    >
      <summary className={buttonClass()}>
        <IconColumns3 size={16} stroke={1.5} aria-hidden="true" />
        Columns
      </summary>
      <fieldset className={styles.columnChoices}>
        <legend className="hidden">Columns</legend>
        {offered.map((name) => (
          <label key={name}>
            <input
              type="checkbox"
              checked={shown.includes(name)}
              onChange={({ target: { checked } }) =>
                chooseColumns(
                  type,
                  offered.filter((one) => (one === name ? checked : shown.includes(one))),
                )
              }
            />
            {name}
          </label>
        ))}
        {chosen && (
          <Button small onClick={() => chooseColumns(type, undefined)}>
            As usual
          </Button>
        )}
      </fieldset>
    </details>
  );
}
