/** The import dialog for a user who may not import: shown before a name is typed. */

import { Button } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";

interface ImportDeniedProps {
  /** Which right is missing, and who can grant it. */
  denial: string;
  onClose(): void;
}

export function ImportDenied({ denial, onClose }: ImportDeniedProps) {
  return (
    <Dialog
      title="Import a cluster"
      onClose={onClose}
      footer={
        <Button data-autofocus onClick={onClose}>
          Close
        </Button>
      }
    >
      <p className="second">{denial}</p>
    </Dialog>
  );
}
