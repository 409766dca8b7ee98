/** Whom a role is given to: found at the identity providers and among the users of the server. */

import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { sentence } from "../../api/errors.ts";
import { type FoundPrincipal, principalsQuery } from "../../api/members.ts";
import { Field } from "../../ui/Field.tsx";
import styles from "./Members.module.css";

/** More are found by typing more letters. */
const FOUND_SHOWN = 8;

interface PrincipalSearchProps {
  /** Nothing: users and groups. */
  only?: "group";
  chosen: FoundPrincipal | undefined;
  onChoose(principal: FoundPrincipal | undefined): void;
}

/** Finds a user or a group by the first letters of a name. */
export function PrincipalSearch({ only, chosen, onChoose }: PrincipalSearchProps) {
  const [text, setText] = useState("");
  const group = useId();
  const found = useQuery(principalsQuery(text.trim()));
  const matches = found.data?.filter(({ principalType }) => !only || principalType === only);
  const shown = matches?.slice(0, FOUND_SHOWN) ?? [];
  return (
    <>
      <Field
        label={only ? "Group" : "User or group"}
        value={text}
        placeholder="The first letters of a name"
        autoComplete="off"
        spellCheck={false}
        data-autofocus
        onChange={(event) => {
          setText(event.target.value);
          onChoose(undefined);
        }}
      />
      <div className={styles.found} role="radiogroup" aria-label="Found" aria-live="polite">
        {shown.map((principal) => (
          <label key={principal.id} className={styles.role}>
            <input
              type="radio"
              name={group}
              checked={chosen?.id === principal.id}
              onChange={() => onChoose(principal)}
            />
            <span>
              {principal.name || principal.loginName}
              <span className={styles.about}>
                {[principal.principalType, principal.loginName, principal.provider]
                  .filter(Boolean)
                  .join(", ")}
              </span>
            </span>
          </label>
        ))}
        {matches?.length === 0 && (
          <p className="second">{only ? "No group has such a name." : "Nobody has such a name."}</p>
        )}
        {found.isError && <p className="second">{sentence(found.error)}</p>}
      </div>
    </>
  );
}
