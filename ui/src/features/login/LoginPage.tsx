/** Signing in with a local account. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { ApiError, sentence } from "../../api/errors.ts";
import { login, sessionQuery } from "../../api/queries.ts";
import { GUIDE } from "../../paths.ts";
import { Button } from "../../ui/Button.tsx";
import { Field } from "../../ui/Field.tsx";
import { Logo } from "../../ui/Logo.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { HerdArt } from "./HerdArt.tsx";
import styles from "./LoginPage.module.css";

interface LoginPageProps {
  /** The requested page, if the user was redirected here. */
  to?: string | undefined;
  /** Why the previous login has ended, if there was one. */
  loginEnd?: string | undefined;
  version: string;
  onDone(): void;
}

export function LoginPage({ to, loginEnd, version, onDone }: LoginPageProps) {
  const client = useQueryClient();
  const form = useRef<HTMLFormElement>(null);
  const [visible, setVisible] = useState(false);
  useEffect(() => {
    document.title = "Sign in · Drover";
    form.current?.querySelector("input")?.focus();
  }, []);
  const signIn = useMutation({
    mutationFn: async (data: FormData) => {
      await login(String(data.get("username")), String(data.get("password")));
      return client.fetchQuery({ ...sessionQuery, staleTime: 0 });
    },
    onSuccess: onDone,
    onError: () => form.current?.querySelector<HTMLInputElement>("[name=password]")?.focus(),
  });
  return (
    <div className={styles.login}>
      <header className={styles.art}>
        <HerdArt />
        <p className={styles.logo}>
          <Logo size={28} />
          Drover
        </p>
        <div>
          <p className={styles.host}>{window.location.host}</p>
          <p className="second">Every Kubernetes cluster you have, in one place.</p>
        </div>
      </header>
      <main className={styles.main}>
        <form
          ref={form}
          className={styles.form}
          method="post"
          onSubmit={(event) => {
            event.preventDefault();
            if (!signIn.isPending) signIn.mutate(new FormData(event.currentTarget));
          }}
        >
          <h1>Sign in</h1>
          {signIn.isError ? (
            <div role="alert">
              <Notice tone="err" title={refusal(signIn.error).title}>
                {refusal(signIn.error).text}
              </Notice>
            </div>
          ) : (
            (to || loginEnd) && (
              <Notice
                tone="wait"
                title={
                  loginEnd ? capital(loginEnd) : "You are not signed in, or your login has ended."
                }
              >
                {to ? "Sign in, and you go straight back to where you were." : "Sign in to go on."}
              </Notice>
            )
          )}
          <Field
            label="User name"
            name="username"
            autoComplete="username"
            autoCapitalize="none"
            spellCheck={false}
            required
            large
          />
          <Field
            label="Password"
            name="password"
            type={visible ? "text" : "password"}
            autoComplete="current-password"
            required
            large
            trailing={
              <button
                type="button"
                className="link small"
                aria-pressed={visible}
                onClick={() => setVisible(!visible)}
              >
                {visible ? "Hide" : "Show"}
                <span className="hidden"> the password</span>
              </button>
            }
          />
          <div className={styles.submit}>
            <Button kind="primary" type="submit">
              {signIn.isPending ? "Signing in…" : "Sign in"}
            </Button>
          </div>
          <p className="small third">Forgot it? Any administrator can set a new local password.</p>
        </form>
        <p className={styles.version}>
          Drover {version}
          <a className="link" href={GUIDE}>
            Guide
          </a>
          <a className="link" href="/licences.txt">
            Licences
          </a>
        </p>
      </main>
    </div>
  );
}

/**
 * The server does not recognise the browser's address as its own, such as behind an untrusted
 * proxy.
 */
const CROSS_SITE = "CrossSiteRequest";
const CROSS_SITE_HELP =
  "It accepts logins from its own pages only. Open it by the address in its setting server-url, or name the proxy in front of it with --trusted-proxies.";

function refusal(error: Error): { title: string; text: string } {
  if (error instanceof ApiError) {
    if (error.status === 401) {
      return {
        title: "Wrong user name or password.",
        text: "Both must match exactly, including spaces and capital letters.",
      };
    }
    if (error.code === CROSS_SITE) {
      return { title: "This address is not the server's own.", text: CROSS_SITE_HELP };
    }
    if (error.isForbidden) {
      return {
        title: "This user is disabled.",
        text: "An administrator can enable it again.",
      };
    }
    if (error.status === 429) {
      return { title: "Too many failed tries for this name.", text: capital(error.message) };
    }
    if (error.isUnreachable) {
      return { title: "The server does not accept logins now.", text: capital(sentence(error)) };
    }
  }
  return { title: "Signing in did not work.", text: capital(sentence(error)) };
}

function capital(text: string): string {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}
