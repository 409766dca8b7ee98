/** A new password for somebody who has lost theirs. */

import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { sentence } from "../../api/errors.ts";
import { type KnownUser, setPassword } from "../../api/users.ts";
import { Button } from "../../ui/Button.tsx";
import { Code } from "../../ui/Code.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { nameOf, randomPassword } from "./model.ts";

interface PasswordDialogProps {
  user: KnownUser;
  onClose(): void;
}

export function PasswordDialog({ user, onClose }: PasswordDialogProps) {
  const [password] = useState(randomPassword);
  const set = useMutation({ mutationFn: () => setPassword(user.id, password) });
  return (
    <Dialog
      title={`Set a new password of ${nameOf(user)}`}
      subtitle={user.username}
      onClose={onClose}
      footer={
        set.isSuccess ? (
          <Button onClick={onClose}>Done</Button>
        ) : (
          <>
            <Button data-autofocus onClick={onClose}>
              Cancel
            </Button>
            <Button kind="primary" onClick={() => set.mutate()}>
              {set.isPending ? "Under way…" : "Set password"}
            </Button>
          </>
        )
      }
    >
      {set.isSuccess ? (
        <>
          <p>
            Hand it over: it is shown only now, and has to be changed at the next login. Their
            logins ended.
          </p>
          <Code text={password} what="the password" focused />
        </>
      ) : (
        <p className="second">
          A random password replaces theirs, and ends their logins. Tokens for the API go on.
        </p>
      )}
      {set.isError && (
        <Notice tone="err" title="It was not set.">
          {sentence(set.error)}
        </Notice>
      )}
    </Dialog>
  );
}
