/** Marks and labels of objects. */

import styles from "./Tags.module.css";

/** The two letters of a cluster. The name is beside it. */
export function Monogram({ letters }: { letters: string }) {
  return (
    <span className={styles.monogram} aria-hidden="true">
      {letters}
    </span>
  );
}

/** A label's value. Production is inverted wherever it shows. */
export function Tag({ children, inverse }: { children: React.ReactNode; inverse?: boolean }) {
  return <span className={inverse ? styles.inverse : styles.tag}>{children}</span>;
}

export function Key({ children }: { children: React.ReactNode }) {
  return <kbd className={styles.key}>{children}</kbd>;
}
