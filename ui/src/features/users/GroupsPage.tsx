/** The groups of identity providers that have global roles: given and taken. */

import { IconPlus, IconRefresh, IconUsersGroup, IconX } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { mayQuery } from "../../api/access.ts";
import { sentence } from "../../api/errors.ts";
import { useLiveFeed } from "../../api/freshness.ts";
import { type FoundPrincipal, principalQuery } from "../../api/members.ts";
import {
  type GlobalRoleBinding,
  giveGroupRole,
  globalRoleBindingsQuery,
  refreshGroups,
  rolesOfQuery,
  takeGlobalRole,
} from "../../api/users.ts";
import { count } from "../../lib/quantity.ts";
import { paths } from "../../paths.ts";
import { Button, buttonClass, IconButton } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Blank, Notice, Skeleton } from "../../ui/Notice.tsx";
import { Page, PageHead } from "../../ui/Page.tsx";
import { Select } from "../../ui/Select.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { PrincipalSearch } from "../members/PrincipalSearch.tsx";
import { byGroup } from "./model.ts";
import styles from "./Users.module.css";

const TYPES = ["globalRoleBinding"];

export function GroupsPage() {
  const bindings = useQuery(globalRoleBindingsQuery);
  const may = useQuery(mayQuery("create", "globalrolebindings"));
  const [giving, setGiving] = useState(false);
  useLiveFeed("/v3/subscribe", TYPES);
  const refresh = useMutation({
    mutationFn: refreshGroups,
    onSuccess: () => notify("ok", "Groups are read anew at the identity providers"),
    onError: (error) => notify("err", sentence(error)),
  });
  const denial =
    may.data === false
      ? "You may not give global roles: that needs the role Administrator."
      : undefined;
  const groups = byGroup(bindings.data ?? []);
  return (
    <Page title="Groups">
      <PageHead
        title="Groups"
        facts={bindings.data && `${count(groups.length)} with global roles`}
        actions={
          <>
            <Link className={buttonClass()} {...paths.users()}>
              Users
            </Link>
            <Button deniedBecause={denial} onClick={() => refresh.mutate()}>
              {!denial && <IconRefresh size={16} stroke={1.5} />}
              {refresh.isPending ? "Under way…" : "Read memberships anew"}
            </Button>
            <Button
              kind={denial ? "plain" : "primary"}
              deniedBecause={denial}
              onClick={() => setGiving(true)}
            >
              {!denial && <IconPlus size={16} stroke={1.5} />}
              Give role to group
            </Button>
          </>
        }
      />
      {bindings.isPending && <Skeleton rows={4} what="groups" />}
      {bindings.isError && (
        <Notice tone="off" title="You may not see which groups have global roles.">
          {sentence(bindings.error)}
        </Notice>
      )}
      {groups.length > 0 && (
        <ul className={styles.list} aria-label="Groups">
          {groups.map(([group, held]) => (
            <GroupLine key={group} group={group} held={held} denial={denial} />
          ))}
        </ul>
      )}
      {bindings.data && groups.length === 0 && (
        <Blank icon={<IconUsersGroup size={20} stroke={1.5} />} title="No group has a global role">
          Groups come from identity providers. Roles in clusters and projects are given there.
        </Blank>
      )}
      {giving && <GiveDialog onClose={() => setGiving(false)} />}
    </Page>
  );
}

interface GroupLineProps {
  /** The id of its principal. */
  group: string;
  held: readonly GlobalRoleBinding[];
  denial: string | undefined;
}

function GroupLine({ group, held, denial }: GroupLineProps) {
  const { data: principal } = useQuery(principalQuery(group));
  const { data: roles = [] } = useQuery(rolesOfQuery("global"));
  const take = useMutation({
    mutationFn: takeGlobalRole,
    onError: (error) => notify("err", sentence(error)),
  });
  const name = principal?.name || group;
  return (
    <li className={styles.groupLine}>
      <IconUsersGroup size={16} stroke={1.5} aria-hidden="true" />
      <span className="strong">{name}</span>
      {name !== group && <span className="third">{group}</span>}
      <span className="grow" />
      {held.map(({ id, globalRoleId }) => {
        const role = roles.find((one) => one.id === globalRoleId)?.name ?? globalRoleId;
        return (
          <span key={id} className={styles.given}>
            {role}
            {!denial && (
              <IconButton
                label={`Take the role ${role} from ${name}`}
                onClick={() => take.mutate(id)}
              >
                <IconX size={16} stroke={1.5} />
              </IconButton>
            )}
          </span>
        );
      })}
    </li>
  );
}

function GiveDialog({ onClose }: { onClose(): void }) {
  const client = useQueryClient();
  const [group, setGroup] = useState<FoundPrincipal>();
  const [role, setRole] = useState("");
  const { data: roles = [] } = useQuery(rolesOfQuery("global"));
  const about = roles.find(({ id }) => id === role)?.description;
  const give = useMutation({
    mutationFn: (to: FoundPrincipal) => giveGroupRole(to.id, role),
    onSuccess: () => {
      notify("ok", `Members of ${group?.name || group?.id} have the role`);
      void client.invalidateQueries({ queryKey: globalRoleBindingsQuery.queryKey });
      onClose();
    },
  });
  const missing = !group ? "Choose a group first." : role ? undefined : "Choose a role first.";
  return (
    <Dialog
      title="Give a global role to a group"
      subtitle="All its members have it, from their next login on at the latest."
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            kind="primary"
            disabledBecause={missing}
            onClick={() => group && give.mutate(group)}
          >
            {give.isPending ? "Under way…" : "Give role"}
          </Button>
        </>
      }
    >
      <div className={styles.form}>
        <PrincipalSearch only="group" chosen={group} onChoose={setGroup} />
        <Select label="Role" value={role} onChange={setRole}>
          <option value="">Choose</option>
          {roles.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </Select>
        {about && <p className="second">{about}</p>}
        {give.isError && (
          <Notice tone="err" title="Nothing was changed.">
            {sentence(give.error)}
          </Notice>
        )}
      </div>
    </Dialog>
  );
}
