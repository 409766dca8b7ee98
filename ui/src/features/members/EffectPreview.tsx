/** What giving a role would do, before it is given. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import {
  effectQuery,
  type FoundPrincipal,
  type MemberScope,
  type RoleTemplate,
} from "../../api/members.ts";
import { paths } from "../../paths.ts";
import styles from "./Members.module.css";
import { effectWords } from "./model.ts";

interface EffectPreviewProps {
  scope: MemberScope;
  role: string;
  roles: readonly RoleTemplate[];
  /** Nothing: nobody is chosen yet. */
  principal: FoundPrincipal | undefined;
}

export function EffectPreview({ scope, role, roles, principal }: EffectPreviewProps) {
  const effect = useQuery(effectQuery(scope, role, principal));
  if (!principal || !effect.data) return null;
  const { who, gains } = effectWords(effect.data, principal);
  // Roles that another one includes are shown where they can be given, too.
  const names = roles.filter(({ id }) => gains.includes(id)).map(({ name }) => name);
  return (
    <section className={styles.effect} aria-label="What this does" aria-live="polite">
      {gains.length === 0 ? (
        <p>
          <b>{who}</b> already {principal.principalType === "group" ? "have" : "has"} this role in{" "}
          {scope.name}. Nothing changes.
        </p>
      ) : (
        <p>
          <b>{who}</b> {principal.principalType === "group" ? "gain" : "gains"}{" "}
          {names.join(", ") || role} in {scope.name}, at once.{" "}
          <Link className="link" {...paths.roles()}>
            What roles allow
          </Link>
        </p>
      )}
    </section>
  );
}
