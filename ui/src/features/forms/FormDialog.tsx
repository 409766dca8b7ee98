/** A dialog with a form that changes something, once: its error is shown in it. */

import { useId } from "react";
import { sentence } from "../../api/errors.ts";
import { Button } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Notice } from "../../ui/Notice.tsx";
import styles from "./FormDialog.module.css";

interface FormDialogProps {
  title: React.ReactNode;
  subtitle?: React.ReactNode;
  wide?: boolean;
  /** On the button that submits. */
  verb: string;
  /** What the form is submitted to. */
  change: { isPending: boolean; error: Error | null };
  /** What an error means to the user. */
  failure: string;
  /** Other buttons than those that submit and cancel. */
  more?: React.ReactNode;
  /** Not called while a change is under way. */
  onSubmit(data: FormData): void;
  onClose(): void;
  children: React.ReactNode;
}

export function FormDialog(props: FormDialogProps) {
  const { title, subtitle, wide, verb, change, failure, more, onSubmit, onClose, children } = props;
  const form = useId();
  return (
    <Dialog
      title={title}
      subtitle={subtitle}
      wide={wide ?? false}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          {more}
          <Button kind="primary" type="submit" form={form}>
            {change.isPending ? "Under way…" : verb}
          </Button>
        </>
      }
    >
      <form
        id={form}
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          if (!change.isPending) onSubmit(new FormData(event.currentTarget));
        }}
      >
        {children}
        {change.error && (
          <Notice tone="err" title={failure}>
            {sentence(change.error)}
          </Notice>
        )}
      </form>
    </Dialog>
  );
}
