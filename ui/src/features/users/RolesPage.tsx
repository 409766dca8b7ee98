/** The roles that can be given, each with its rules; own ones are made, changed and deleted. */

import { IconPlus } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { mayQuery } from "../../api/access.ts";
import { sentence } from "../../api/errors.ts";
import { deleteRole, type KnownRole, rolesOfQuery } from "../../api/users.ts";
import { count } from "../../lib/quantity.ts";
import { paths } from "../../paths.ts";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { DangerDialog } from "../../ui/DangerDialog.tsx";
import { Notice, Skeleton } from "../../ui/Notice.tsx";
import { Page, PageHead } from "../../ui/Page.tsx";
import { Tag } from "../../ui/Tags.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { ruleWords } from "../access/model.ts";
import { ROLE_KINDS, type RoleKind } from "./model.ts";
import { RoleDialog } from "./RoleDialog.tsx";
import styles from "./Users.module.css";

/** What is done with a role. */
interface OpenDialog {
  dialog: "new" | "copy" | "change" | "delete";
  role?: KnownRole;
}

export function RolesPage() {
  const [kind, setKind] = useState<RoleKind>("global");
  const [open, setOpen] = useState<OpenDialog>();
  const resource = kind === "global" ? "globalroles" : "roletemplates";
  const may = useQuery(mayQuery("create", resource));
  const denial =
    may.data === false ? "You may not make roles: that needs the role Administrator." : undefined;
  const close = () => setOpen(undefined);
  const roles = useQuery(rolesOfQuery(kind));
  return (
    <Page title="Roles">
      <PageHead
        title="Roles"
        facts={roles.data && count(roles.data.length)}
        actions={
          <>
            <Link className={buttonClass()} {...paths.users()}>
              Users
            </Link>
            <Button
              kind={denial ? "plain" : "primary"}
              deniedBecause={denial}
              onClick={() => setOpen({ dialog: "new" })}
            >
              {!denial && <IconPlus size={16} stroke={1.5} />}
              New role
            </Button>
          </>
        }
      />
      <fieldset className={styles.kinds}>
        <legend className="hidden">Where they are given</legend>
        {ROLE_KINDS.map(({ name, text }) => (
          <label key={name}>
            <input
              type="radio"
              name="kind"
              checked={kind === name}
              onChange={() => setKind(name)}
            />{" "}
            {text}
          </label>
        ))}
      </fieldset>
      {roles.isPending && <Skeleton rows={8} what="roles" />}
      {roles.isError && (
        <Notice tone="err" title="The roles could not be read.">
          {sentence(roles.error)}
        </Notice>
      )}
      {roles.data && (
        <ul className={styles.list} aria-label="Roles">
          {roles.data.map((role) => (
            <RoleLine key={role.id} role={role} denial={denial} onOpen={setOpen} />
          ))}
        </ul>
      )}
      {open?.dialog === "delete" && open.role && (
        <DeleteRoleDialog kind={kind} role={open.role} onClose={close} />
      )}
      {open && open.dialog !== "delete" && (
        <RoleDialog kind={kind} role={open.role} isCopy={open.dialog === "copy"} onClose={close} />
      )}
    </Page>
  );
}

interface RoleLineProps {
  role: KnownRole;
  denial: string | undefined;
  onOpen(open: OpenDialog): void;
}

function RoleLine({ role, denial, onOpen }: RoleLineProps) {
  const { id, name, description, builtin, locked, rules, roleTemplateIds } = role;
  const inherited = roleTemplateIds ?? [];
  return (
    <li>
      <details>
        <summary className={styles.summary}>
          <span className="strong">{name}</span>
          <span className="third">{id}</span>
          {!builtin && <Tag>own</Tag>}
          {locked && <Tag>locked</Tag>}
          <span className="second">{description}</span>
        </summary>
        <ul className={styles.rules}>
          {(rules ?? []).map((rule) => (
            <li key={JSON.stringify(rule)}>{ruleWords(rule)}</li>
          ))}
          {inherited.length > 0 && <li>and what these have: {inherited.join(", ")}</li>}
          {!rules?.length && inherited.length === 0 && (
            <li className="second">It allows nothing.</li>
          )}
        </ul>
        <div className={styles.roleActions}>
          <Button small deniedBecause={denial} onClick={() => onOpen({ dialog: "copy", role })}>
            Copy…
          </Button>
          {!builtin && (
            <>
              <Button
                small
                deniedBecause={denial}
                onClick={() => onOpen({ dialog: "change", role })}
              >
                Change…
              </Button>
              <Button
                small
                deniedBecause={denial}
                onClick={() => onOpen({ dialog: "delete", role })}
              >
                Delete…
              </Button>
            </>
          )}
        </div>
      </details>
    </li>
  );
}

interface DeleteRoleDialogProps {
  kind: RoleKind;
  role: KnownRole;
  onClose(): void;
}

function DeleteRoleDialog({ kind, role, onClose }: DeleteRoleDialogProps) {
  const client = useQueryClient();
  const remove = useMutation({
    mutationFn: () => deleteRole(kind, role.id),
    onSuccess: () => {
      notify("rem", `Deleted the role ${role.name}`);
      void client.invalidateQueries({ queryKey: rolesOfQuery(kind).queryKey });
      onClose();
    },
  });
  return (
    <DangerDialog
      title={`Delete the role ${role.name}?`}
      verb="Delete"
      isPending={remove.isPending}
      failed="It is still there."
      failure={remove.error ? sentence(remove.error) : undefined}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p className="second">
        A role that somebody has, or that another role inherits, is not deleted: the answer says
        who.
      </p>
    </DangerDialog>
  );
}
