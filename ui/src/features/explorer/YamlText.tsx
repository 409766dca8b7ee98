/** The text of an object that is being written, with help on the field that the cursor is in. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { sentence } from "../../api/errors.ts";
import type { KindSchema } from "../../api/kinds.ts";
import { openApiQuery } from "../../api/openapi.ts";
import { Skeleton } from "../../ui/Notice.tsx";
import { useCluster } from "../clusters/ClusterPage.tsx";
import styles from "./Explorer.module.css";
import { helpAt, pathAt, schemaOfKind } from "./fieldHelp.ts";

interface YamlTextProps {
  label: string;
  text: string;
  rows: number;
  /** Of its kind; nothing: there is no help. */
  schema: KindSchema | undefined;
  isFirst?: boolean;
  onChange(text: string): void;
}

export function YamlText({ label, text, rows, schema, isFirst, onChange }: YamlTextProps) {
  const [cursor, setCursor] = useState(0);
  const [open, setOpen] = useState(false);
  return (
    <div className={styles.writing}>
      <textarea
        className={styles.editor}
        aria-label={label}
        value={text}
        rows={rows}
        spellCheck={false}
        autoCapitalize="off"
        data-autofocus={isFirst || undefined}
        onChange={(event) => onChange(event.target.value)}
        onSelect={({ currentTarget }) => setCursor(currentTarget.selectionStart)}
      />
      {schema && (
        <details
          className={styles.fieldHelp}
          onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
        >
          <summary>Help on fields</summary>
          {open && <Help schema={schema} path={pathAt(text, cursor)} />}
        </details>
      )}
    </div>
  );
}

function Help({ schema: { attributes }, path }: { schema: KindSchema; path: readonly string[] }) {
  const cluster = useCluster();
  const { group, version, kind } = attributes;
  const document = useQuery(openApiQuery(cluster.id, group, version));
  if (document.isPending) return <Skeleton rows={3} what="the fields" />;
  const root = document.data && schemaOfKind(document.data, attributes);
  if (document.isError || !root) {
    return (
      <p className="second">
        {document.error ? sentence(document.error) : "The cluster describes no fields of it."}
      </p>
    );
  }
  const { help, known } = helpAt(document.data, root, path);
  return (
    <section aria-label="Help" aria-live="polite">
      <p>
        <code>{[kind, ...known].join(".")}</code> <span className="third">{help.type}</span>
      </p>
      {help.description && <p className={styles.description}>{help.description}</p>}
      {help.options.length > 0 && <p className="second">One of: {help.options.join(", ")}</p>}
      {help.fields.length > 0 && (
        <ul className={styles.fields}>
          {help.fields.map(({ name, type, isRequired }) => (
            <li key={name}>
              <code>{name}</code> <span className="third">{type}</span>
              {isRequired && <span className="second"> needed</span>}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
