/** A framed part of a page. */

import { useId } from "react";
import styles from "./Card.module.css";

interface CardProps {
  title: React.ReactNode;
  /** Secondary text beside the title. */
  note?: React.ReactNode;
  /** At the right end of the head. */
  aside?: React.ReactNode;
  /** Without inner space, for lists and tables. */
  flush?: boolean;
  children: React.ReactNode;
}

export function Card({ title, note, aside, flush, children }: CardProps) {
  const heading = useId();
  return (
    <section className={styles.card} aria-labelledby={heading}>
      <header className={styles.header}>
        <h2 id={heading}>{title}</h2>
        {note && <span className={styles.note}>{note}</span>}
        <span className="grow" />
        {aside}
      </header>
      <div className={flush ? styles.flush : styles.body}>{children}</div>
    </section>
  );
}
