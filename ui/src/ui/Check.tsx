/** A checkbox with its explanation. */

import { useId } from "react";
import styles from "./Check.module.css";

interface CheckProps extends Omit<React.ComponentProps<"input">, "id" | "type"> {
  children: React.ReactNode;
}

export function Check({ children, ...input }: CheckProps) {
  const id = useId();
  return (
    <label className={styles.check} htmlFor={id}>
      <input id={id} type="checkbox" {...input} />
      <span>{children}</span>
    </label>
  );
}
