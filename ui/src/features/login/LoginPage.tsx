/** Signing in: with a name and a password, or on the pages of an identity provider. */

import { IconKey } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { ApiError, sentence } from "../../api/errors.ts";
import { login, providersQuery, sessionQuery } from "../../api/queries.ts";
import type { LoginProvider } from "../../api/types.ts";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { Field } from "../../ui/Field.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { ShowButton } from "../../ui/ShowButton.tsx";
import { FAILURES, type LoginFailure } from "./failures.ts";
import { LoginFrame } from "./LoginFrame.tsx";
import styles from "./LoginPage.module.css";
import { providerName, startAddress } from "./providers.ts";

interface LoginPageProps {
  /** The requested page, if the user was redirected here. */
  to?: string | undefined;
  /** Why the previous login has ended, if there was one. */
  loginEnd?: string | undefined;
  /** Why a login on the pages of a provider failed, if the user comes back from there. */
  failed?: LoginFailure | undefined;
  version: string;
  onDone(): void;
}

export function LoginPage({ to, loginEnd, failed, version, onDone }: LoginPageProps) {
  const client = useQueryClient();
  const form = useRef<HTMLFormElement>(null);
  const [visible, setVisible] = useState(false);
  const { data: providers = [] } = useQuery(providersQuery);
  const external = providers.filter((provider) => provider.redirectUrl);
  const directories = providers.filter((provider) => !provider.redirectUrl);
  useEffect(() => {
    document.title = "Sign in · Drover";
    form.current?.querySelector<HTMLElement>("input[name=username]")?.focus();
  }, []);
  const signIn = useMutation({
    mutationFn: async (data: FormData) => {
      const text = (name: string) => String(data.get(name));
      const provider = directories.find(({ id }) => id === data.get("provider"));
      await login(provider, text("username"), text("password"));
      return client.fetchQuery({ ...sessionQuery, staleTime: 0 });
    },
    onSuccess: onDone,
    onError: () => form.current?.querySelector<HTMLInputElement>("[name=password]")?.focus(),
  });
  return (
    <LoginFrame version={version}>
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
        <Announcement error={signIn.error} failed={failed} to={to} loginEnd={loginEnd} />
        {external.map((provider) => (
          <a
            key={provider.id}
            className={`${buttonClass("primary")} ${styles.provider}`}
            href={startAddress(provider, to)}
          >
            <IconKey size={16} stroke={1.5} aria-hidden="true" />
            Continue with {providerName(provider.id)}
          </a>
        ))}
        {external.length > 0 && (
          <p className={styles.or}>
            <span>or with {directories.length > 1 ? "a password" : "a local account"}</span>
          </p>
        )}
        {directories.length > 1 && <Directories providers={directories} />}
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
          trailing={<ShowButton visible={visible} onChange={setVisible} what="the password" />}
        />
        <div className={styles.submit}>
          <Button kind={external.length > 0 ? "plain" : "primary"} type="submit">
            {signIn.isPending ? "Signing in…" : "Sign in"}
          </Button>
        </div>
        <p className="small third">Forgot it? Any administrator can set a new local password.</p>
      </form>
    </LoginFrame>
  );
}

/** Where the name and the password are checked. */
function Directories({ providers }: { providers: LoginProvider[] }) {
  return (
    <fieldset className={styles.directories}>
      <legend>Account</legend>
      {providers.map((provider, index) => (
        <label key={provider.id}>
          <input type="radio" name="provider" value={provider.id} defaultChecked={index === 0} />
          {providerName(provider.id)}
        </label>
      ))}
    </fieldset>
  );
}

interface AnnouncementProps {
  error: Error | null;
  failed: LoginFailure | undefined;
  to: string | undefined;
  loginEnd: string | undefined;
}

/** Why the user is here: the last attempt failed, or a page needs a login. */
function Announcement({ error, failed, to, loginEnd }: AnnouncementProps) {
  const problem = error ? refusal(error) : failed && FAILURES[failed];
  if (problem) {
    return (
      <div role="alert">
        <Notice tone="err" title={problem.title}>
          {problem.text}
        </Notice>
      </div>
    );
  }
  if (!to && !loginEnd) return null;
  const title = loginEnd ? capital(loginEnd) : "You are not signed in, or your login has ended.";
  return (
    <Notice tone="wait" title={title}>
      {to ? "Sign in, and you go straight back to where you were." : "Sign in to go on."}
    </Notice>
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
