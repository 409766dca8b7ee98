/** The roles that can be given, each with its rules. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { sentence } from "../../api/errors.ts";
import { type KnownRole, rolesOfQuery } from "../../api/users.ts";
import { count } from "../../lib/quantity.ts";
import { paths } from "../../paths.ts";
import { buttonClass } from "../../ui/Button.tsx";
import { Notice, Skeleton } from "../../ui/Notice.tsx";
import { Page, PageHead } from "../../ui/Page.tsx";
import { Tag } from "../../ui/Tags.tsx";
import { ruleWords } from "../access/model.ts";
import { ROLE_KINDS, type RoleKind } from "./model.ts";
import styles from "./Users.module.css";

export function RolesPage() {
  const [kind, setKind] = useState<RoleKind>("global");
  const roles = useQuery(rolesOfQuery(kind));
  return (
    <Page title="Roles">
      <PageHead
        title="Roles"
        facts={roles.data && count(roles.data.length)}
        actions={
          <Link className={buttonClass()} {...paths.users()}>
            Users
          </Link>
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
            <RoleLine key={role.id} role={role} />
          ))}
        </ul>
      )}
    </Page>
  );
}

function RoleLine({ role }: { role: KnownRole }) {
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
      </details>
    </li>
  );
}
