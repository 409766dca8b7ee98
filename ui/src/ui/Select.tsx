/** A choice among few, its label above. */

import { useId } from "react";
import styles from "./Field.module.css";

interface SelectProps extends Omit<React.ComponentProps<"select">, "id" | "onChange"> {
  label: React.ReactNode;
  onChange?(value: string): void;
}

export function Select({ label, onChange, children, ...select }: SelectProps) {
  const id = useId();
  return (
    <div>
      <label className={styles.label} htmlFor={id}>
        {label}
      </label>
      <select
        id={id}
        className={styles.select}
        onChange={(event) => onChange?.(event.target.value)}
        {...select}
      >
        {children}
      </select>
    </div>
  );
}
