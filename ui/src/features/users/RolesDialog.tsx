/** The global roles of a user, given and taken one by one. */

import { IconX } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { sentence } from "../../api/errors.ts";
import {
  giveGlobalRole,
  globalRoleBindingsQuery,
  type KnownUser,
  rolesOfQuery,
  takeGlobalRole,
} from "../../api/users.ts";
import { Button, IconButton } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { Select } from "../../ui/Select.tsx";
import { nameOf, rolesOf } from "./model.ts";
import styles from "./Users.module.css";

interface RolesDialogProps {
  user: KnownUser;
  onClose(): void;
}

export function RolesDialog({ user, onClose }: RolesDialogProps) {
  const client = useQueryClient();
  const { data: roles = [] } = useQuery(rolesOfQuery("global"));
  const { data: bindings = [] } = useQuery(globalRoleBindingsQuery);
  const [chosen, setChosen] = useState("");
  const held = rolesOf(user, bindings, roles);
  const names = new Set(held.map(({ name }) => name));
  const others = roles.filter(({ name }) => !names.has(name));
  const about = roles.find(({ id }) => id === chosen)?.description;
  const change = useMutation({
    mutationFn: (todo: { give: string } | { take: string }) =>
      "give" in todo ? giveGlobalRole(user.id, todo.give) : takeGlobalRole(todo.take),
    onSuccess: () => {
      setChosen("");
      return client.invalidateQueries({ queryKey: globalRoleBindingsQuery.queryKey });
    },
  });
  return (
    <Dialog
      title={`Global roles of ${nameOf(user)}`}
      subtitle="Rights on the server itself; roles in clusters and projects are given there."
      onClose={onClose}
      footer={<Button onClick={onClose}>Done</Button>}
    >
      <div className={styles.form}>
        <ul className={styles.held} aria-label="Roles">
          {held.map(({ bindingId, name }) => (
            <li key={bindingId}>
              <span className="grow">{name}</span>
              <IconButton
                label={`Take the role ${name}`}
                onClick={() => change.mutate({ take: bindingId })}
              >
                <IconX size={16} stroke={1.5} />
              </IconButton>
            </li>
          ))}
          {held.length === 0 && <li className="second">None.</li>}
        </ul>
        <Select label="Another role" value={chosen} onChange={setChosen}>
          <option value="">Choose</option>
          {others.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </Select>
        {about && <p className="second">{about}</p>}
        <div>
          <Button
            disabledBecause={chosen ? undefined : "Choose a role first."}
            onClick={() => change.mutate({ give: chosen })}
          >
            {change.isPending ? "Under way…" : "Give role"}
          </Button>
        </div>
        {change.isError && (
          <Notice tone="err" title="Nothing was changed.">
            {sentence(change.error)}
          </Notice>
        )}
      </div>
    </Dialog>
  );
}
