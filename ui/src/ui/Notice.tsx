/** Messages of a page or a part of it: nothing to list, or a problem. */

import styles from "./Notice.module.css";
import { Present } from "./Past.tsx";
import { Shape, type Tone } from "./StateMark.tsx";

interface NoticeProps {
  tone?: Tone;
  title: React.ReactNode;
  /** Why, and what helps. */
  children?: React.ReactNode;
  /** Possible actions. */
  actions?: React.ReactNode;
}

/** A framed message within a page. */
export function Notice({ tone = "wait", title, children, actions }: NoticeProps) {
  return (
    <div className={styles.notice} data-tone={tone}>
      <Present>
        <Shape tone={tone} />
      </Present>
      <div className="grow">
        <p className="strong">{title}</p>
        {children && <div className={styles.text}>{children}</div>}
        {actions && <div className={styles.actions}>{actions}</div>}
      </div>
    </div>
  );
}

interface BlankProps {
  icon?: React.ReactNode;
  title: React.ReactNode;
  children?: React.ReactNode;
  actions?: React.ReactNode;
}

/** The message of an empty page: what it is for, and one action. */
export function Blank({ icon, title, children, actions }: BlankProps) {
  return (
    <div className={styles.blank}>
      {icon && <div className={styles.icon}>{icon}</div>}
      <p className="strong">{title}</p>
      {children && <div className={styles.text}>{children}</div>}
      {actions && <div className={styles.actions}>{actions}</div>}
    </div>
  );
}

/** Grey placeholder bars for rows. */
export function Skeleton({ rows, what }: { rows: number; what: string }) {
  return (
    <div className={styles.skeleton} role="status" aria-label={`Reading ${what}`}>
      {Array.from({ length: rows }, (_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are identical and never move.
        <div key={index} className={styles.bones} aria-hidden="true">
          <span className={styles.dot} />
          <span className={styles.short} />
          <span className={styles.long} />
          <span className="grow" />
          <span className={styles.short} />
        </div>
      ))}
    </div>
  );
}
