/** A role is made or changed: its rules, what it inherits, and who gets it by itself. */

import { IconPlus, IconTrash } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { sentence } from "../../api/errors.ts";
import { type KnownRole, type RoleContent, rolesOfQuery, saveRole } from "../../api/users.ts";
import { Button, IconButton } from "../../ui/Button.tsx";
import { Check } from "../../ui/Check.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Field } from "../../ui/Field.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { notify } from "../../ui/Toasts.tsx";
import type { RoleKind } from "./model.ts";
import { lineOf, lineProblem, NEW_LINE, type RuleLine, ruleOf } from "./rules.ts";
import styles from "./Users.module.css";

/** Who gets a role without being given it, by the field that says so. */
const DEFAULTS = {
  global: { field: "newUserDefault", text: "New users get it" },
  cluster: { field: "clusterCreatorDefault", text: "Who creates a cluster gets it there" },
  project: { field: "projectCreatorDefault", text: "Who creates a project gets it there" },
} as const;

interface RoleDialogProps {
  kind: RoleKind;
  /** The role that is changed, or the one that a new one is like. */
  role?: KnownRole | undefined;
  isCopy?: boolean;
  onClose(): void;
}

export function RoleDialog({ kind, role, isCopy, onClose }: RoleDialogProps) {
  const client = useQueryClient();
  const id = isCopy ? undefined : role?.id;
  const [name, setName] = useState(isCopy ? `${role?.name} (copy)` : (role?.name ?? ""));
  const [description, setDescription] = useState(role?.description ?? "");
  const [lines, setLines] = useState<readonly RuleLine[]>((role?.rules ?? []).map(lineOf));
  const [inherited, setInherited] = useState<readonly string[]>(role?.roleTemplateIds ?? []);
  const [isLocked, setLocked] = useState(!isCopy && !!role?.locked);
  const { field, text } = DEFAULTS[kind];
  const [isDefault, setDefault] = useState(!isCopy && !!role?.[field]);
  const content: RoleContent = {
    ...{ name: name.trim(), description: description.trim(), rules: lines.map(ruleOf) },
    ...(kind !== "global" && { roleTemplateIds: [...inherited], locked: isLocked }),
    [field]: isDefault,
  };
  const save = useMutation({
    mutationFn: () => saveRole(kind, content, id),
    onSuccess: () => {
      notify("ok", `${id ? "Changed" : "Made"} the role ${content.name}`);
      void client.invalidateQueries({ queryKey: rolesOfQuery(kind).queryKey });
      void client.invalidateQueries({ queryKey: ["role-templates", kind] });
      onClose();
    },
  });
  const missing = content.name ? lines.map(lineProblem).find(Boolean) : "Name it first.";
  const change = (index: number, line: RuleLine) =>
    setLines(lines.map((one, place) => (place === index ? line : one)));
  return (
    <Dialog
      title={id ? `Role ${role?.name}` : "New role"}
      subtitle={
        id ? "A change holds at once, for all who have the role." : "It can be given afterwards."
      }
      wide
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" disabledBecause={missing} onClick={() => save.mutate()}>
            {save.isPending ? "Under way…" : id ? "Save" : "Create"}
          </Button>
        </>
      }
    >
      <div className={styles.form}>
        <Field
          label="Name"
          value={name}
          data-autofocus
          onChange={(event) => setName(event.target.value)}
        />
        <Field
          label="Description"
          value={description}
          help="What it is for, in the words of those who give it."
          onChange={(event) => setDescription(event.target.value)}
        />
        <ol className={styles.ruleLines} aria-label="Rules">
          {lines.map((line, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a line has no other name.
            <li key={index}>
              <RuleFields line={line} number={index + 1} onChange={(one) => change(index, one)} />
              <IconButton
                label={`Remove rule ${index + 1}`}
                onClick={() => setLines(lines.filter((_, place) => place !== index))}
              >
                <IconTrash size={16} stroke={1.5} />
              </IconButton>
            </li>
          ))}
        </ol>
        <div>
          <Button small onClick={() => setLines([...lines, NEW_LINE])}>
            <IconPlus size={16} stroke={1.5} />
            Add rule
          </Button>
        </div>
        {kind !== "global" && (
          <Inherited kind={kind} own={id} chosen={inherited} onChange={setInherited} />
        )}
        <Check checked={isDefault} onChange={(event) => setDefault(event.target.checked)}>
          {text}
        </Check>
        {kind !== "global" && (
          <Check checked={isLocked} onChange={(event) => setLocked(event.target.checked)}>
            Locked: nobody can be given it any more
          </Check>
        )}
        {save.isError && (
          <Notice tone="err" title="Nothing was changed.">
            {sentence(save.error)}
          </Notice>
        )}
      </div>
    </Dialog>
  );
}

interface RuleFieldsProps {
  line: RuleLine;
  number: number;
  onChange(line: RuleLine): void;
}

const RULE_FIELDS: readonly { name: keyof RuleLine; label: string }[] = [
  { name: "verbs", label: "Verbs" },
  { name: "resources", label: "Resources" },
  { name: "apiGroups", label: "API groups" },
  { name: "resourceNames", label: "Only these names" },
  { name: "paths", label: "Or paths" },
];

function RuleFields({ line, number, onChange }: RuleFieldsProps) {
  return (
    <fieldset className={styles.rule}>
      <legend className="hidden">Rule {number}</legend>
      {RULE_FIELDS.map(({ name, label }) => (
        <Field
          key={name}
          label={label}
          value={line[name]}
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => onChange({ ...line, [name]: event.target.value })}
        />
      ))}
    </fieldset>
  );
}

interface InheritedProps {
  kind: RoleKind;
  /** The role itself, which cannot inherit from itself. */
  own: string | undefined;
  chosen: readonly string[];
  onChange(ids: readonly string[]): void;
}

function Inherited({ kind, own, chosen, onChange }: InheritedProps) {
  const { data: roles = [] } = useQuery(rolesOfQuery(kind));
  return (
    <details className={styles.inherited} open={chosen.length > 0}>
      <summary>It has what other roles have</summary>
      <div className={styles.choices}>
        {roles
          .filter(({ id }) => id !== own)
          .map(({ id, name }) => (
            <Check
              key={id}
              checked={chosen.includes(id)}
              onChange={({ target: { checked } }) =>
                onChange(checked ? [...chosen, id] : chosen.filter((one) => one !== id))
              }
            >
              {name}
            </Check>
          ))}
      </div>
    </details>
  );
}
