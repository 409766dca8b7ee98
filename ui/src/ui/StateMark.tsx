/**
 * States: a shape, then a word, then a colour, always in this order. Shapes differ without colour.
 */

import { usePast, was } from "./Past.tsx";
import styles from "./StateMark.module.css";

/** The meaning of a state for users, independent of its word in the API. */
export type Tone = "ok" | "run" | "wait" | "warn" | "err" | "off" | "rem" | "done";

const STROKE = { fill: "none", stroke: "currentColor" } as const;
const HOLE = { fill: "none", stroke: "var(--surface)", strokeLinecap: "round" } as const;

const SHAPES: Record<Tone, React.ReactNode> = {
  ok: (
    <>
      <circle cx="7" cy="7" r="6" fill="currentColor" />
      <path d="m4.3 7.2 1.9 1.9 3.5-4" strokeWidth="1.6" strokeLinejoin="round" {...HOLE} />
    </>
  ),
  run: (
    <>
      <circle cx="7" cy="7" r="5.2" strokeOpacity=".28" strokeWidth="2" {...STROKE} />
      <path
        className={styles.spin}
        d="M7 1.8A5.2 5.2 0 0 1 12.2 7"
        strokeWidth="2"
        strokeLinecap="round"
        {...STROKE}
      />
    </>
  ),
  wait: (
    <>
      <circle cx="7" cy="7" r="5.3" strokeWidth="1.5" {...STROKE} />
      <path d="M7 4v3.2L9 8.5" strokeWidth="1.5" strokeLinecap="round" {...STROKE} />
    </>
  ),
  warn: (
    <>
      <path
        d="M7 1.2c.4 0 .7.2.9.5l5.2 9.2c.4.7-.1 1.6-.9 1.6H1.8c-.8 0-1.3-.9-.9-1.6l5.2-9.2c.2-.3.5-.5.9-.5z"
        fill="currentColor"
      />
      <path d="M7 5v3M7 10.2v.01" strokeWidth="1.6" {...HOLE} />
    </>
  ),
  err: (
    <>
      <path d="M4.5 1h5L13 4.5v5L9.5 13h-5L1 9.5v-5z" fill="currentColor" />
      <path d="m4.9 4.9 4.2 4.2m0-4.2L4.9 9.1" strokeWidth="1.6" {...HOLE} />
    </>
  ),
  off: (
    <>
      <circle cx="7" cy="7" r="5.2" strokeWidth="1.8" {...STROKE} />
      <path d="m3.5 10.5 7-7" strokeWidth="1.8" {...STROKE} />
    </>
  ),
  rem: (
    <>
      <circle cx="7" cy="7" r="5.3" strokeWidth="1.6" strokeDasharray="2.6 1.57" {...STROKE} />
      <path d="M4.7 7h4.6" strokeWidth="1.6" strokeLinecap="round" {...STROKE} />
    </>
  ),
  done: (
    <>
      <circle cx="7" cy="7" r="5.3" strokeWidth="1.4" {...STROKE} />
      <path
        d="m4.6 7.2 1.7 1.7 3.1-3.6"
        strokeWidth="1.4"
        strokeLinecap="round"
        strokeLinejoin="round"
        {...STROKE}
      />
    </>
  ),
};

/** The shape alone; a word must be beside it. */
export function Shape({ tone }: { tone: Tone }) {
  const className = styles[usePast() ? "past" : tone];
  return (
    <svg className={className} viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">
      {SHAPES[tone]}
    </svg>
  );
}

interface StateProps {
  tone: Tone;
  /** The text names the thing that has the state; it is not the word of the state. */
  named?: boolean;
  children: string;
}

/** Shape and word for tables: a healthy word is grey. */
export function State(props: StateProps) {
  return <Marked className={styles.state} {...props} />;
}

/** Shape and word on a background of their colour, for headers. */
export function StatePill(props: StateProps) {
  return <Marked className={styles.pill} {...props} />;
}

function Marked({
  className,
  tone,
  named,
  children,
}: StateProps & { className: string | undefined }) {
  const past = usePast();
  return (
    <span className={className} data-tone={past ? "past" : tone}>
      <Shape tone={tone} />
      {past && !named ? was(children) : children}
      {past && named && <span className="hidden">, as last known</span>}
    </span>
  );
}
