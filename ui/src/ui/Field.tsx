/** A text field: label above, help below, the error below after leaving it. */

import { useId } from "react";
import styles from "./Field.module.css";
import { Present } from "./Past.tsx";
import { Shape } from "./StateMark.tsx";

interface FieldProps extends Omit<React.ComponentProps<"input">, "id"> {
  label: React.ReactNode;
  help?: React.ReactNode;
  error?: React.ReactNode;
  /** Content inside, at the right end. */
  trailing?: React.ReactNode;
  large?: boolean;
  /** Gets the first focus in a dialog. */
  "data-autofocus"?: boolean;
}

export function Field({ label, help, error, trailing, large, ...input }: FieldProps) {
  const id = useId();
  const note = error ?? help;
  return (
    <div>
      <label className={styles.label} htmlFor={id}>
        {label}
      </label>
      <div className={styles.box} data-large={large || undefined} data-wrong={!!error || undefined}>
        <input
          id={id}
          className={styles.input}
          aria-invalid={!!error || undefined}
          aria-describedby={note ? `${id}-note` : undefined}
          {...input}
        />
        {trailing}
      </div>
      {note && (
        <div id={`${id}-note`} className={error ? styles.error : styles.help}>
          {error && (
            <Present>
              <Shape tone="err" />
            </Present>
          )}
          <span>{note}</span>
        </div>
      )}
    </div>
  );
}
