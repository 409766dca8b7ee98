/** A new user of the server, with a first password that is theirs until they log in. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { createUser, globalRoleBindingsQuery, rolesOfQuery, usersQuery } from "../../api/users.ts";
import { Button } from "../../ui/Button.tsx";
import { Code } from "../../ui/Code.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Field } from "../../ui/Field.tsx";
import { Select } from "../../ui/Select.tsx";
import { FormDialog } from "../forms/FormDialog.tsx";
import { nameOf, randomPassword } from "./model.ts";

export function CreateUserDialog({ onClose }: { onClose(): void }) {
  const client = useQueryClient();
  const [password] = useState(randomPassword);
  const { data: roles = [] } = useQuery(rolesOfQuery("global"));
  const create = useMutation({
    mutationFn: (data: FormData) => {
      const text = (field: string) => String(data.get(field)).trim();
      const user = {
        ...{ username: text("username"), name: text("name"), password },
        mustChangePassword: true,
      };
      return createUser(user, text("role"));
    },
    onSettled: () => {
      void client.invalidateQueries({ queryKey: usersQuery.queryKey });
      void client.invalidateQueries({ queryKey: globalRoleBindingsQuery.queryKey });
    },
  });
  if (create.data) {
    return (
      <Dialog
        title={`${nameOf(create.data)} can log in`}
        subtitle={create.data.username}
        onClose={onClose}
        footer={<Button onClick={onClose}>Done</Button>}
      >
        <p>
          Hand over this password: it is shown only now, and has to be changed at the first login.
        </p>
        <Code text={password} what="the password" focused />
      </Dialog>
    );
  }
  return (
    <FormDialog
      title="Create user"
      subtitle="For somebody who has no account at an identity provider."
      verb="Create"
      change={create}
      failure="It did not work."
      onSubmit={create.mutate}
      onClose={onClose}
    >
      <Field
        label="User name"
        name="username"
        required
        autoComplete="off"
        autoCapitalize="off"
        spellCheck={false}
        data-autofocus
      />
      <Field label="Name" name="name" autoComplete="off" help="As others see it." />
      <Select label="Further global role" name="role">
        <option value="">None besides those of all new users</option>
        {roles.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </Select>
    </FormDialog>
  );
}
