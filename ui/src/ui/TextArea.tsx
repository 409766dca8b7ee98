/** A text with several lines, its label above. */

import { useId } from "react";
import styles from "./Field.module.css";

interface TextAreaProps extends Omit<React.ComponentProps<"textarea">, "id"> {
  label: React.ReactNode;
  /** Gets the first focus in a dialog. */
  "data-autofocus"?: boolean;
}

export function TextArea({ label, ...area }: TextAreaProps) {
  const id = useId();
  return (
    <div>
      <label className={styles.label} htmlFor={id}>
        {label}
      </label>
      <textarea id={id} className={styles.area} spellCheck={false} {...area} />
    </div>
  );
}
