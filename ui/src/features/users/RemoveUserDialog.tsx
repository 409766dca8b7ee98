/** The end of a user. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { sentence } from "../../api/errors.ts";
import { deleteUser, type KnownUser, usersQuery } from "../../api/users.ts";
import { Button } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { nameOf } from "./model.ts";

interface RemoveUserDialogProps {
  user: KnownUser;
  onClose(): void;
}

export function RemoveUserDialog({ user, onClose }: RemoveUserDialogProps) {
  const client = useQueryClient();
  const remove = useMutation({
    mutationFn: () => deleteUser(user.id),
    onSuccess: () => {
      notify("rem", `Deleting ${nameOf(user)}`);
      void client.invalidateQueries({ queryKey: usersQuery.queryKey });
      onClose();
    },
  });
  return (
    <Dialog
      title={`Delete ${nameOf(user)}?`}
      subtitle={user.username}
      onClose={onClose}
      footer={
        <>
          <Button data-autofocus onClick={onClose}>
            Keep
          </Button>
          <Button kind="danger" onClick={() => remove.mutate()}>
            {remove.isPending ? "Under way…" : "Delete"}
          </Button>
        </>
      }
    >
      <p className="second">
        Logins, tokens and roles of this user end at once. What they created stays. To cut them off
        for a while, disable the user.
      </p>
      {remove.isError && (
        <Notice tone="err" title="Nobody was deleted.">
          {sentence(remove.error)}
        </Notice>
      )}
    </Dialog>
  );
}
