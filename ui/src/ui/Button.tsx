/** Buttons: verbs. At most one primary on a page. */

import { IconLock } from "@tabler/icons-react";
import styles from "./Button.module.css";
import { Hint } from "./Hint.tsx";

type ButtonKind = "plain" | "primary" | "danger" | "ghost";

interface ButtonProps extends React.ComponentProps<"button"> {
  kind?: ButtonKind;
  small?: boolean;
  /** Gets the first focus in a dialog. */
  "data-autofocus"?: boolean | undefined;
  /** Why it is disabled now. It stays focusable and shows the reason. */
  disabledBecause?: string | undefined;
  /**
   * Why the user has no right to it, and who can grant it. It stays focusable, has a lock and shows
   * the reason.
   */
  deniedBecause?: string | undefined;
}

/** The classes of a button, for links that look like one. */
export function buttonClass(kind: ButtonKind = "plain", small = false): string {
  return [styles.button, styles[kind], small && styles.small].filter(Boolean).join(" ");
}

export function Button(props: ButtonProps) {
  const { kind, small, disabledBecause, deniedBecause, onClick, className, ...rest } = props;
  const why = deniedBecause ?? disabledBecause;
  const off = why !== undefined;
  return (
    <Hint text={why}>
      <button
        type="button"
        className={[buttonClass(kind, small), className].filter(Boolean).join(" ")}
        aria-disabled={off || undefined}
        {...rest}
        onClick={(event) => {
          if (off) event.preventDefault();
          else onClick?.(event);
        }}
      >
        {deniedBecause && <IconLock size={14} stroke={1.5} aria-hidden="true" />}
        {rest.children}
      </button>
    </Hint>
  );
}

interface IconButtonProps extends React.ComponentProps<"button"> {
  /** Its accessible name, because it has no text. */
  label: string;
}

export function IconButton({ label, className, ...rest }: IconButtonProps) {
  const classes = [styles.icon, className].filter(Boolean).join(" ");
  return <button type="button" className={classes} aria-label={label} title={label} {...rest} />;
}
