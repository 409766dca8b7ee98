/** The frame of a page: its title in the window, its one heading, facts, actions. */

import { useEffect } from "react";
import styles from "./Page.module.css";

interface PageProps {
  /** Of the window. */
  title: string;
  children: React.ReactNode;
}

export function Page({ title, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Drover`;
  }, [title]);
  return <div className={styles.page}>{children}</div>;
}

interface PageHeadProps {
  title: string;
  /** Beside the title: its state. */
  mark?: React.ReactNode;
  /** One line. */
  facts?: React.ReactNode;
  actions?: React.ReactNode;
}

export function PageHead({ title, mark, facts, actions }: PageHeadProps) {
  return (
    <div className={styles.head}>
      <h1>{title}</h1>
      {mark && <span className={styles.mark}>{mark}</span>}
      <span className={styles.facts}>{facts}</span>
      <span className={styles.actions}>{actions}</span>
    </div>
  );
}
