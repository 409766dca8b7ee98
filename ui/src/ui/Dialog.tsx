/** A dialog for a decision or a bounded task. Dialogs are never stacked. */

import { IconX } from "@tabler/icons-react";
import { useEffect, useId, useRef } from "react";
import { IconButton } from "./Button.tsx";
import styles from "./Dialog.module.css";

interface DialogProps {
  title: React.ReactNode;
  /** One line under the title. */
  subtitle?: React.ReactNode;
  /** Wide dialogs have a changing list; others a question. */
  wide?: boolean;
  /** The name of the close button. */
  closeLabel?: string;
  onClose(): void;
  footer: React.ReactNode;
  children: React.ReactNode;
}

/**
 * Makes a `<dialog>` modal while its component is mounted: the focus stays inside, the page behind
 * is inert, and afterwards the focus returns.
 *
 * The first focus goes to the element with `data-autofocus`, else to the first focusable one.
 */
export function useModal(): React.RefObject<HTMLDialogElement | null> {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    const before = document.activeElement;
    element?.showModal();
    element?.querySelector<HTMLElement>("[data-autofocus]")?.focus();
    return () => {
      element?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return dialog;
}

export function Dialog(props: DialogProps) {
  const { title, subtitle, wide, closeLabel = "Close", onClose, footer, children } = props;
  const dialog = useModal();
  const heading = useId();
  return (
    <dialog
      ref={dialog}
      className={styles.dialog}
      data-wide={wide || undefined}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header className={styles.header}>
        <div className="grow">
          <h2 id={heading} className={styles.title}>
            {title}
          </h2>
          {subtitle && <p className="second">{subtitle}</p>}
        </div>
        <IconButton label={closeLabel} onClick={onClose}>
          <IconX size={16} stroke={1.5} />
        </IconButton>
      </header>
      <div className={styles.body}>{children}</div>
      <footer className={styles.footer}>{footer}</footer>
    </dialog>
  );
}
