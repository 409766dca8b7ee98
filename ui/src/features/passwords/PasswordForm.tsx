/** Setting one's own password: what it ends is said before, and counted after. */

import { useMutation, useQuery } from "@tanstack/react-query";
import { useEffect, useId, useRef, useState } from "react";
import { changePassword, settingQuery } from "../../api/queries.ts";
import { Button } from "../../ui/Button.tsx";
import { Field } from "../../ui/Field.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { changeWords, refusalOf } from "./model.ts";
import styles from "./PasswordForm.module.css";

interface PasswordFormProps {
  /** For password managers. */
  username: string;
  /** The way on once the password is set. */
  wayOn: React.ReactNode;
}

export function PasswordForm({ username, wayOn }: PasswordFormProps) {
  const form = useRef<HTMLFormElement>(null);
  const done = useRef<HTMLDivElement>(null);
  const endTokensId = useId();
  const [visible, setVisible] = useState(false);
  const lengthMin = useQuery(settingQuery("password-min-length")).data;
  const change = useMutation({
    mutationFn: async (data: FormData) => {
      const endTokens = data.get("endTokens") === "on";
      const [current, next] = [String(data.get("current")), String(data.get("new"))];
      return { endTokens, change: await changePassword(current, next, endTokens) };
    },
    onError: (error) => {
      const field = refusalOf(error).field ?? "current";
      form.current?.querySelector<HTMLInputElement>(`[name=${field}]`)?.focus();
    },
  });
  useEffect(() => {
    if (change.isSuccess) done.current?.focus();
    else form.current?.querySelector("input")?.focus();
  }, [change.isSuccess]);
  if (change.isSuccess) {
    return (
      <div ref={done} className={styles.form} tabIndex={-1} role="status">
        <Notice tone="ok" title="Your password is changed." actions={wayOn}>
          {changeWords(change.data.change, change.data.endTokens)} This login goes on.
        </Notice>
      </div>
    );
  }
  const refused = change.error ? refusalOf(change.error) : undefined;
  const error = (field: "current" | "new") => (refused?.field === field ? refused.text : undefined);
  const type = visible ? "text" : "password";
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
        trailing={
          <button
            type="button"
            className="link small"
            aria-pressed={visible}
            onClick={() => setVisible(!visible)}
          >
            {visible ? "Hide" : "Show"}
            <span className="hidden"> the passwords</span>
          </button>
        }
      />
      <p className="second">
        Your other logins end at once; this one goes on. So do tokens for the API and in
        kubeconfigs, unless they are to end, too.
      </p>
      <label className={styles.check} htmlFor={endTokensId}>
        <input id={endTokensId} type="checkbox" name="endTokens" />
        End my tokens, too
      </label>
      <div>
        <Button kind="primary" type="submit">
          {change.isPending ? "Changing…" : "Change password"}
        </Button>
      </div>
    </form>
  );
}
