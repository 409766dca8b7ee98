/** A text with several lines, its label above. */

import { useId } from "react";
import styles from "./Field.module.css";

interface TextAreaProps extends Omit<React.ComponentProps<"textarea">, "id"> {
  label: React.ReactNode;
  help?: React.ReactNode;
  /** Gets the first focus in a dialog. */
  "data-autofocus"?: boolean;
}

export function TextArea({ label, help, ...area }: TextAreaProps) {
  const id = useId();
  return (
    <div>
      <label className={styles.label} htmlFor={id}>
        {label}
      </label>
      <textarea
        id={id}
        className={styles.area}
        spellCheck={false}
        aria-describedby={help ? `${id}-note` : undefined}
        {...area}
      />
      {help && (
        <div id={`${id}-note`} className={styles.help}>
          {help}
        </div>
      )}
    </div>
  );
}
