/** Changing the user's own password: shows what it ends before, and the numbers after. */

import { type UseMutationResult, useMutation, useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { changePassword, settingQuery } from "../../api/queries.ts";
import type { PasswordChange } from "../../api/types.ts";
import { Button } from "../../ui/Button.tsx";
import { Check } from "../../ui/Check.tsx";
import { Field } from "../../ui/Field.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { ShowButton } from "../../ui/ShowButton.tsx";
import { changeWords, type PasswordRefusal, refusalOf } from "./model.ts";
import styles from "./PasswordForm.module.css";

interface PasswordFormProps {
  /** For password managers. */
  username: string;
  /** The next step once the password is set. */
  wayOn: React.ReactNode;
}

export function PasswordForm({ username, wayOn }: PasswordFormProps) {
  const change = useChange();
  return change.isSuccess ? (
    <Changed {...change.data} wayOn={wayOn} />
  ) : (
    <Form change={change} username={username} />
  );
}

/** What was changed, and whether tokens were to end, too. */
interface Done {
  change: PasswordChange;
  endTokens: boolean;
}

type PasswordMutation = UseMutationResult<Done, Error, FormData>;

function useChange(): PasswordMutation {
  return useMutation({
    mutationFn: async (data: FormData) => {
      const endTokens = data.get("endTokens") === "on";
      const [current, next] = [String(data.get("current")), String(data.get("new"))];
      return { endTokens, change: await changePassword(current, next, endTokens) };
    },
  });
}

function Changed({ change, endTokens, wayOn }: Done & Pick<PasswordFormProps, "wayOn">) {
  const notice = useRef<HTMLDivElement>(null);
  useEffect(() => notice.current?.focus(), []);
  return (
    <div ref={notice} className={styles.form} tabIndex={-1} role="status">
      <Notice tone="ok" title="Your password is changed." actions={wayOn}>
        {changeWords(change, endTokens)} This login goes on.
      </Notice>
    </div>
  );
}

function Form({ change, username }: { change: PasswordMutation; username: string }) {
  const form = useRef<HTMLFormElement>(null);
  const refused = change.error ? refusalOf(change.error) : undefined;
  // The focus is first in the first field, and after a refusal in the refused one.
  const focused = refused?.field ?? "current";
  useEffect(() => {
    if (change.isPending) return;
    form.current?.querySelector<HTMLInputElement>(`[name=${focused}]`)?.focus();
  }, [focused, change.isPending]);
  return (
    <form
      ref={form}
      className={styles.form}
      method="post"
      onSubmit={(event) => {
        event.preventDefault();
        if (!change.isPending) change.mutate(new FormData(event.currentTarget));
      }}
    >
      {refused && !refused.field && (
        <div role="alert">
          <Notice tone="err" title="Your password is as it was.">
            {refused.text}
          </Notice>
        </div>
      )}
      <input type="hidden" name="username" autoComplete="username" value={username} readOnly />
      <Passwords refused={refused} />
      <p className="second">
        Your other logins end at once; this one stays. Tokens for the API and in kubeconfigs stay
        valid, unless you end them as well.
      </p>
      <Check name="endTokens">End my tokens as well</Check>
      <div>
        <Button kind="primary" type="submit">
          {change.isPending ? "Changing…" : "Change password"}
        </Button>
      </div>
    </form>
  );
}

/** The current and the new one, with one switch that shows both. */
function Passwords({ refused }: { refused: PasswordRefusal | undefined }) {
  const [visible, setVisible] = useState(false);
  const lengthMin = useQuery(settingQuery("password-min-length")).data;
  const error = (field: "current" | "new") => (refused?.field === field ? refused.text : undefined);
  const type = visible ? "text" : "password";
  return (
    <>
      <Field
        label="Current password"
        name="current"
        type={type}
        autoComplete="current-password"
        error={error("current")}
        required
      />
      <Field
        label="New password"
        name="new"
        type={type}
        autoComplete="new-password"
        help={lengthMin ? `At least ${lengthMin} characters.` : undefined}
        error={error("new")}
        required
        trailing={<ShowButton visible={visible} onChange={setVisible} what="the passwords" />}
      />
    </>
  );
}
