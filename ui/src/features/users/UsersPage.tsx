/** The users of the server: made, disabled, given global roles, removed. */

import {
  IconDots,
  IconKey,
  IconPlayerPause,
  IconPlayerPlay,
  IconPlus,
  IconShield,
  IconTrash,
} from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { mayQuery } from "../../api/access.ts";
import { ApiError, sentence } from "../../api/errors.ts";
import { useLiveFeed } from "../../api/freshness.ts";
import {
  enableUser,
  globalRoleBindingsQuery,
  type KnownUser,
  rolesOfQuery,
  usersQuery,
} from "../../api/users.ts";
import { count } from "../../lib/quantity.ts";
import { paths } from "../../paths.ts";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { Menu, MenuItem } from "../../ui/Menu.tsx";
import { useNarrow } from "../../ui/media.ts";
import { Blank, Notice, Skeleton } from "../../ui/Notice.tsx";
import { Page, PageHead } from "../../ui/Page.tsx";
import { State } from "../../ui/StateMark.tsx";
import table from "../../ui/Table.module.css";
import { notify } from "../../ui/Toasts.tsx";
import { CreateUserDialog } from "./CreateUserDialog.tsx";
import { isEnabled, loginOf, matching, nameOf, rolesOf, userTone, userWord } from "./model.ts";
import { PasswordDialog } from "./PasswordDialog.tsx";
import { RemoveUserDialog } from "./RemoveUserDialog.tsx";
import { RolesDialog } from "./RolesDialog.tsx";
import styles from "./Users.module.css";

const TYPES = ["user", "globalRoleBinding"];

/** More are found by typing. */
const SHOWN_MAX = 500;

export function UsersPage() {
  const users = useQuery(usersQuery);
  const may = useQuery(mayQuery("create", "users"));
  const [text, setText] = useState("");
  const [creating, setCreating] = useState(false);
  useLiveFeed("/v3/subscribe", TYPES);
  const found = useMemo(() => matching(users.data ?? [], text), [users.data, text]);
  const denial =
    may.data === false
      ? "You may not create users: that needs the global role Manage Users."
      : undefined;
  return (
    <Page title="Users">
      <PageHead
        title="Users"
        facts={users.data && count(users.data.length)}
        actions={
          <>
            <Link className={buttonClass()} {...paths.groups()}>
              Groups
            </Link>
            <Link className={buttonClass()} {...paths.roles()}>
              Roles
            </Link>
            <Button
              kind={denial ? "plain" : "primary"}
              deniedBecause={denial}
              onClick={() => setCreating(true)}
            >
              {!denial && <IconPlus size={16} stroke={1.5} />}
              Create user
            </Button>
          </>
        }
      />
      <search>
        <input
          className={styles.filter}
          aria-label="Filter users"
          placeholder="Part of a name"
          value={text}
          spellCheck={false}
          onChange={(event) => setText(event.target.value)}
        />
      </search>
      {users.isPending && <Skeleton rows={6} what="users" />}
      {users.isError && <Failure error={users.error} />}
      {found.length > 0 && <UserTable users={found.slice(0, SHOWN_MAX)} />}
      {found.length > SHOWN_MAX && (
        <p className="second">
          The first {count(SHOWN_MAX)} of {count(found.length)} are shown: type more letters.
        </p>
      )}
      {users.data && found.length === 0 && <Blank title="Nobody matches">Try fewer letters.</Blank>}
      {creating && <CreateUserDialog onClose={() => setCreating(false)} />}
    </Page>
  );
}

function Failure({ error }: { error: Error }) {
  const isForbidden = error instanceof ApiError && error.isForbidden;
  return (
    <Notice
      tone={isForbidden ? "off" : "err"}
      title={isForbidden ? "You may not list users." : "The users could not be read."}
    >
      {sentence(error)}
    </Notice>
  );
}

type Open = "roles" | "password" | "remove";

function UserTable({ users }: { users: readonly KnownUser[] }) {
  const narrow = useNarrow();
  const { data: bindings = [] } = useQuery(globalRoleBindingsQuery);
  const { data: roles = [] } = useQuery(rolesOfQuery("global"));
  const [open, setOpen] = useState<{ dialog: Open; userId: string }>();
  const user = users.find(({ id }) => id === open?.userId);
  const close = () => setOpen(undefined);
  return (
    <div className={table.frame}>
      <table className={`${table.table} ${styles.table}`} data-narrow={narrow || undefined}>
        <caption className="hidden">Users</caption>
        <thead>
          <tr>
            <th scope="col" className={styles.state}>
              State
            </th>
            <th scope="col">Name</th>
            {!narrow && <th scope="col">Login</th>}
            {!narrow && (
              <th scope="col" className={styles.roles}>
                Global roles
              </th>
            )}
            <th scope="col" className={styles.more}>
              <span className="hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {users.map((one) => {
            const held = rolesOf(one, bindings, roles).map(({ name }) => name);
            return (
              <tr key={one.id}>
                <td>
                  <State tone={userTone(one)}>{userWord(one)}</State>
                </td>
                <td className="strong" title={one.id}>
                  {nameOf(one)}
                  {one.me && <span className="second"> you</span>}
                </td>
                {!narrow && <td className={table.quiet}>{loginOf(one)}</td>}
                {!narrow && (
                  <td className={table.quiet} title={held.join(", ")}>
                    {held.join(", ") || "—"}
                  </td>
                )}
                <td className={`${table.right} ${styles.menu}`}>
                  <UserMenu user={one} onOpen={(dialog) => setOpen({ dialog, userId: one.id })} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {user && open?.dialog === "roles" && <RolesDialog user={user} onClose={close} />}
      {user && open?.dialog === "password" && <PasswordDialog user={user} onClose={close} />}
      {user && open?.dialog === "remove" && <RemoveUserDialog user={user} onClose={close} />}
    </div>
  );
}

interface UserMenuProps {
  user: KnownUser;
  onOpen(dialog: Open): void;
}

function UserMenu({ user, onOpen }: UserMenuProps) {
  const client = useQueryClient();
  const label = `Actions for ${nameOf(user)}`;
  const mayUpdate = useQuery(mayQuery("update", "users"));
  const mayDelete = useQuery(mayQuery("delete", "users"));
  const mayGive = useQuery(mayQuery("create", "globalrolebindings"));
  const denied = (may: boolean | undefined) =>
    may === false
      ? "You may not change this user: that needs the global role Manage Users."
      : undefined;
  const denial = denied(mayUpdate.data);
  const self = user.me ? "Nobody can do this to themselves." : undefined;
  const enabled = isEnabled(user);
  const switchOver = useMutation({
    mutationFn: () => enableUser(user.id, !enabled),
    onSuccess: () => {
      notify("ok", `${enabled ? "Disabled" : "Enabled"} ${nameOf(user)}`);
      void client.invalidateQueries({ queryKey: usersQuery.queryKey });
    },
    onError: (error) => notify("err", `${nameOf(user)} was not changed. ${sentence(error)}`),
  });
  return (
    <Menu
      label={label}
      trigger={
        <Button kind="ghost" small aria-label={label}>
          <IconDots size={16} stroke={1.5} />
        </Button>
      }
    >
      <MenuItem
        icon={<IconShield size={16} stroke={1.5} />}
        deniedBecause={denied(mayGive.data)}
        onSelect={() => onOpen("roles")}
      >
        Global roles…
      </MenuItem>
      {user.username && (
        <MenuItem
          icon={<IconKey size={16} stroke={1.5} />}
          deniedBecause={denial ?? (self && "Your own is under Change password.")}
          onSelect={() => onOpen("password")}
        >
          Set password…
        </MenuItem>
      )}
      <MenuItem
        icon={
          enabled ? (
            <IconPlayerPause size={16} stroke={1.5} />
          ) : (
            <IconPlayerPlay size={16} stroke={1.5} />
          )
        }
        deniedBecause={denial ?? self}
        onSelect={() => switchOver.mutate()}
      >
        {enabled ? "Disable" : "Enable"}
      </MenuItem>
      <MenuItem
        icon={<IconTrash size={16} stroke={1.5} />}
        danger
        deniedBecause={self ?? denied(mayDelete.data)}
        onSelect={() => onOpen("remove")}
      >
        Delete…
      </MenuItem>
    </Menu>
  );
}
