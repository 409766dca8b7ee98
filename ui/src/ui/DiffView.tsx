/** What a change of an object would do to its lines. */

import type { DiffLine } from "../lib/diff.ts";
import styles from "./DiffView.module.css";
import { Notice } from "./Notice.tsx";

const MARKS = { added: "+", removed: "−", same: " ", left: "…" } as const;
const WORDS = { added: "added: ", removed: "removed: ", same: "", left: "unchanged" } as const;

export function DiffView({ lines }: { lines: readonly DiffLine[] }) {
  if (lines.length === 0) {
    return (
      <Notice title="The cluster would change nothing.">
        It has these values already, or sets them itself.
      </Notice>
    );
  }
  return (
    <section className={styles.diff} aria-label="What would change">
      {lines.map(({ change, text }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines of one text, in order.
        <div key={index} data-change={change}>
          <span aria-hidden="true">{MARKS[change]} </span>
          <span className="hidden">{WORDS[change]}</span>
          {text}
        </div>
      ))}
    </section>
  );
}
