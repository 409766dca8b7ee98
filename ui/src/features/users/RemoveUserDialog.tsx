/** The end of a user. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { sentence } from "../../api/errors.ts";
import { deleteUser, type KnownUser, usersQuery } from "../../api/users.ts";
import { DangerDialog } from "../../ui/DangerDialog.tsx";
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
    <DangerDialog
      title={`Delete ${nameOf(user)}?`}
      subtitle={user.username}
      verb="Delete"
      isPending={remove.isPending}
      failed="Nobody was deleted."
      failure={remove.error ? sentence(remove.error) : undefined}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p className="second">
        Logins, tokens and roles of this user end at once. What they created stays. To cut them off
        for a while, disable the user.
      </p>
    </DangerDialog>
  );
}
