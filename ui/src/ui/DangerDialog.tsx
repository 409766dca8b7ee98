/** A question before something is lost. The first focus is on the harmless answer. */

import { Button } from "./Button.tsx";
import { Dialog } from "./Dialog.tsx";
import { Notice } from "./Notice.tsx";

interface DangerDialogProps {
  title: React.ReactNode;
  /** One line under the title. */
  subtitle?: React.ReactNode;
  /** What is done: “Delete”. */
  verb: string;
  isPending: boolean;
  /** What holds if it failed: “It was not deleted.” */
  failed: string;
  /** Why it failed. */
  failure: string | undefined;
  onConfirm(): void;
  onClose(): void;
  children: React.ReactNode;
}

export function DangerDialog(props: DangerDialogProps) {
  const { title, subtitle, verb, isPending, failed, failure, onConfirm, onClose, children } = props;
  return (
    <Dialog
      title={title}
      subtitle={subtitle}
      onClose={onClose}
      footer={
        <>
          <Button data-autofocus onClick={onClose}>
            Keep
          </Button>
          <Button kind="danger" onClick={onConfirm}>
            {isPending ? "Under way…" : verb}
          </Button>
        </>
      }
    >
      {children}
      {failure && (
        <Notice tone="err" title={failed}>
          {failure}
        </Notice>
      )}
    </Dialog>
  );
}
