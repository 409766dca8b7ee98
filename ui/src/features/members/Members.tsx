/** Who has a role in a cluster or a project: given and taken. */

import { IconPlus, IconTrash, IconUser, IconUsersGroup } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { mayQuery } from "../../api/access.ts";
import { sentence } from "../../api/errors.ts";
import {
  addMember,
  bindingPlace,
  type FoundPrincipal,
  type Member,
  type MemberScope,
  membersQuery,
  principalQuery,
  removeMember,
  rolesQuery,
} from "../../api/members.ts";
import { count } from "../../lib/quantity.ts";
import { Button } from "../../ui/Button.tsx";
import { Card } from "../../ui/Card.tsx";
import { DangerDialog } from "../../ui/DangerDialog.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Notice, Skeleton } from "../../ui/Notice.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { EffectPreview } from "./EffectPreview.tsx";
import styles from "./Members.module.css";
import { principalOf } from "./model.ts";
import { PrincipalSearch } from "./PrincipalSearch.tsx";

const LEVELS = {
  cluster: { owner: "Cluster Owner", usual: "cluster-member", others: "Administrators" },
  project: { owner: "Project Owner", usual: "project-member", others: "Owners of the cluster" },
} as const;

export function Members({ scope }: { scope: MemberScope }) {
  const members = useQuery(membersQuery(scope));
  const { owner, others } = LEVELS[scope.level];
  const [adding, setAdding] = useState(false);
  const { resource, namespace } = bindingPlace(scope);
  const may = useQuery(mayQuery("create", resource, { namespace }));
  const denial =
    may.data === false ? `You may not give roles here: that needs the role ${owner}.` : undefined;
  return (
    <Card
      title="Members"
      note={members.data && count(members.data.length)}
      aside={
        <Button small deniedBecause={denial} onClick={() => setAdding(true)}>
          {!denial && <IconPlus size={16} stroke={1.5} />}
          Add member
        </Button>
      }
      flush
    >
      {members.isPending && <Skeleton rows={2} what="members" />}
      {members.isError && (
        <Notice tone="off" title="You may not see who has roles here.">
          {sentence(members.error)}
        </Notice>
      )}
      <ul className={styles.lines}>
        {members.data?.map((member) => (
          <MemberLine key={member.id} scope={scope} member={member} />
        ))}
        {members.data?.length === 0 && (
          <li className={`${styles.line} second`}>
            Nobody has a role in it. {others} may use it all the same.
          </li>
        )}
      </ul>
      {adding && <AddDialog scope={scope} onClose={() => setAdding(false)} />}
    </Card>
  );
}

interface MemberLineProps {
  scope: MemberScope;
  member: Member;
}

function MemberLine({ scope, member }: MemberLineProps) {
  const client = useQueryClient();
  const id = principalOf(member);
  const { data: principal } = useQuery(principalQuery(id));
  const { data: roles = [] } = useQuery(rolesQuery(scope.level));
  const [asking, setAsking] = useState(false);
  const name = principal?.name || principal?.loginName || id;
  const role = roles.find((one) => one.id === member.roleTemplateId)?.name ?? member.roleTemplateId;
  const isGroup = !!member.groupPrincipalId || !!member.groupId;
  const Icon = isGroup ? IconUsersGroup : IconUser;
  const { resource, namespace } = bindingPlace(scope);
  const may = useQuery(mayQuery("delete", resource, { namespace }));
  const denial =
    may.data === false
      ? `You may not take roles here: that needs the role ${LEVELS[scope.level].owner}.`
      : undefined;
  const remove = useMutation({
    mutationFn: () => removeMember(scope, member.id),
    onSuccess: () => {
      notify("rem", `${name} has no longer the role ${role}`);
      void client.invalidateQueries({ queryKey: membersQuery(scope).queryKey });
      setAsking(false);
    },
  });
  return (
    <li className={styles.line}>
      <Icon size={16} stroke={1.5} aria-hidden="true" />
      <span className="strong">{name}</span>
      {principal?.loginName && principal.loginName !== name && (
        <span className="third">{principal.loginName}</span>
      )}
      <span className="second">{role}</span>
      <span className="grow" />
      <Button
        small
        kind="ghost"
        deniedBecause={denial}
        aria-label={`Take the role ${role} from ${name}…`}
        onClick={() => setAsking(true)}
      >
        {!denial && <IconTrash size={16} stroke={1.5} />}
      </Button>
      {asking && (
        <DangerDialog
          title={`Take the role ${role} from ${name}?`}
          subtitle={`In ${scope.name}`}
          verb="Take it"
          isPending={remove.isPending}
          failed="Nothing was changed."
          failure={remove.error ? sentence(remove.error) : undefined}
          onConfirm={() => remove.mutate()}
          onClose={() => setAsking(false)}
        >
          <p className="second">
            It holds at once, also for what is open. Other roles that {name} has stay.
          </p>
        </DangerDialog>
      )}
    </li>
  );
}

interface AddDialogProps {
  scope: MemberScope;
  onClose(): void;
}

function AddDialog({ scope, onClose }: AddDialogProps) {
  const client = useQueryClient();
  const [chosen, setChosen] = useState<FoundPrincipal>();
  const [role, setRole] = useState<string>(LEVELS[scope.level].usual);
  const { data: roles = [] } = useQuery(rolesQuery(scope.level));
  const add = useMutation({
    mutationFn: (principal: FoundPrincipal) => addMember(scope, role, principal),
    onSuccess: () => {
      notify("ok", `${chosen?.name || chosen?.loginName} is a member of ${scope.name}`);
      void client.invalidateQueries({ queryKey: membersQuery(scope).queryKey });
      onClose();
    },
  });
  return (
    <Dialog
      title={`Add member to ${scope.name}`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            kind="primary"
            disabledBecause={chosen ? undefined : "Choose a user or a group first."}
            onClick={() => chosen && add.mutate(chosen)}
          >
            {add.isPending ? "Under way…" : "Give role"}
          </Button>
        </>
      }
    >
      <div className={styles.form}>
        <PrincipalSearch chosen={chosen} onChoose={setChosen} />
        <EffectPreview scope={scope} role={role} roles={roles} principal={chosen} />
        <fieldset className={styles.roles}>
          <legend className={styles.label}>Role</legend>
          {roles.map(({ id, name, description }) => (
            <label key={id} className={styles.role}>
              <input
                type="radio"
                name="role"
                value={id}
                checked={role === id}
                onChange={() => setRole(id)}
              />
              <span>
                {name}
                {description && <span className={styles.about}>{description}</span>}
              </span>
            </label>
          ))}
        </fieldset>
        {add.isError && (
          <Notice tone="err" title="Nothing was changed.">
            {sentence(add.error)}
          </Notice>
        )}
      </div>
    </Dialog>
  );
}
