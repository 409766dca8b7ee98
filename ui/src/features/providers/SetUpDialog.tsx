/** A provider is set up: the user logs in there for a test before it is enabled for everybody. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { sentence } from "../../api/errors.ts";
import {
  beginPagesTest,
  enableProvider,
  enableWithCode,
  type ProviderConfig,
  type ProviderTrial,
  providerConfigQuery,
  providerConfigsQuery,
  testProvider,
} from "../../api/providers.ts";
import { schemaQuery } from "../../api/schemas.ts";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Field } from "../../ui/Field.tsx";
import { Notice, Skeleton } from "../../ui/Notice.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { type FormField, formFields, formValues } from "../forms/fields.ts";
import { SchemaFields } from "../forms/SchemaFields.tsx";
import { providerName } from "../login/providers.ts";
import { guideOf, kindOf } from "./model.ts";
import styles from "./Providers.module.css";

const FORM = "set-up-provider";
/** The login that is tried; no field of a configuration has these names. */
const TRIAL = { username: "trial-username", password: "trial-password" };
const LEFT_OUT = ["enabled"];
const LONG = ["certificate"];
const FIRST = [
  ...["servers", "port", "tls", "certificate", "serviceAccountDistinguishedName"],
  ...["serviceAccountUsername", "serviceAccountPassword", "defaultLoginDomain"],
  ...["userSearchBase", "groupSearchBase", "accessMode"],
];

/** Of providers with pages of their own. */
const FIRST_OF_PAGES = [
  ...["issuer", "hostname", "tls", "tenantId", "applicationId", "applicationSecret", "clientId"],
  ...["clientSecret", "oauthCredential", "serviceAccountCredential", "adminEmail", "rancherUrl"],
  "accessMode",
];

interface SetUpDialogProps {
  provider: ProviderConfig;
  onClose(): void;
}

export function SetUpDialog({ provider, onClose }: SetUpDialogProps) {
  const schema = useQuery(schemaQuery(provider.type));
  const stored = useQuery(providerConfigQuery(provider));
  const failure = schema.error ?? stored.error;
  const name = providerName(provider.id);
  if (schema.data && stored.data) {
    const given = { provider, fields: formFields(schema.data, LEFT_OUT), stored: stored.data };
    return kindOf(provider)?.isDirectory ? (
      <DirectoryDialog {...given} onClose={onClose} />
    ) : (
      <PagesDialog {...given} onClose={onClose} />
    );
  }
  return (
    <Dialog
      title={`Set up ${name}`}
      wide
      onClose={onClose}
      footer={<Button onClick={onClose}>Cancel</Button>}
    >
      {failure ? (
        <Notice tone="err" title="Its settings could not be read.">
          {sentence(failure)}
        </Notice>
      ) : (
        <Skeleton rows={6} what={`the settings of ${name}`} />
      )}
    </Dialog>
  );
}

/** Says that it is enabled, and closes the dialog. */
function useEnabled(provider: ProviderConfig, onClose: () => void): () => void {
  const client = useQueryClient();
  return () => {
    notify("ok", `${providerName(provider.id)} is enabled`);
    void client.invalidateQueries({ queryKey: providerConfigsQuery.queryKey });
    void client.invalidateQueries({ queryKey: providerConfigQuery(provider).queryKey });
    onClose();
  };
}

interface FilledDialogProps extends SetUpDialogProps {
  fields: readonly FormField[];
  stored: Record<string, unknown>;
}

function DirectoryDialog({ provider, fields, stored, onClose }: FilledDialogProps) {
  const form = useRef<HTMLFormElement>(null);
  const onSuccess = useEnabled(provider, onClose);
  const test = useMutation({
    mutationFn: (data: FormData) => testProvider(provider, trialOf(fields, data)),
  });
  const enable = useMutation({
    mutationFn: (data: FormData) => enableProvider(provider, trialOf(fields, data)),
    onSuccess,
  });
  const error = enable.error ?? test.error;
  const run = (action: typeof test | typeof enable) => {
    if (!form.current?.reportValidity()) return;
    test.reset();
    enable.reset();
    action.mutate(new FormData(form.current));
  };
  return (
    <Dialog
      title={`Set up ${providerName(provider.id)}`}
      subtitle="You log in there for a test; nothing is enabled before that works."
      wide
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button onClick={() => run(test)}>{test.isPending ? "Testing…" : "Test"}</Button>
          <Button kind="primary" type="submit" form={FORM}>
            {enable.isPending ? "Under way…" : "Test and enable"}
          </Button>
        </>
      }
    >
      <form
        id={FORM}
        ref={form}
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          run(enable);
        }}
      >
        <SchemaFields fields={fields} stored={stored} long={LONG} first={FIRST} />
        <OwnAccount about="It is tried now.">
          <Field label="User name there" name={TRIAL.username} required autoComplete="off" />
          <Field
            label="Password there"
            name={TRIAL.password}
            type="password"
            required
            autoComplete="new-password"
          />
        </OwnAccount>
      </form>
      <div aria-live="polite">
        {error && <NotSoFar error={error} />}
        {test.data && (
          <Notice tone="ok" title={`It works: ${test.data.principalId}`}>
            {groupsText(test.data.groupPrincipalIds ?? [])}
          </Notice>
        )}
      </div>
    </Dialog>
  );
}

/** For a provider where people log in on its own pages, which lead to a code. */
function PagesDialog({ provider, fields, stored, onClose }: FilledDialogProps) {
  const name = providerName(provider.id);
  const form = useRef<HTMLFormElement>(null);
  const [code, setCode] = useState("");
  const onSuccess = useEnabled(provider, onClose);
  const values = () => formValues(fields, new FormData(form.current ?? undefined));
  const begin = useMutation({ mutationFn: () => beginPagesTest(provider, values()) });
  const enable = useMutation({
    mutationFn: () => enableWithCode(provider, values(), code.trim()),
    // A code is good once.
    onError: () => begin.reset(),
    onSuccess,
  });
  const error = enable.error ?? begin.error;
  const missing = !begin.data
    ? "Begin the test first."
    : code.trim()
      ? undefined
      : "Log in there, and paste the code.";
  const given = { ...stored, rancherUrl: stored.rancherUrl || `${location.origin}/verify-auth` };
  const guide = kindOf(provider);
  return (
    <Dialog
      title={`Set up ${name}`}
      subtitle="You log in there for a test; nothing is enabled before that works."
      wide
      onClose={onClose}
      footer={
        <>
          {guide && (
            <a
              className={buttonClass("ghost")}
              href={guideOf(guide)}
              target="_blank"
              rel="noopener"
            >
              Guide
            </a>
          )}
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" form={FORM}>
            {begin.isPending ? "Under way…" : "Begin the test"}
          </Button>
          <Button kind="primary" disabledBecause={missing} onClick={() => enable.mutate()}>
            {enable.isPending ? "Under way…" : "Test and enable"}
          </Button>
        </>
      }
    >
      <form
        id={FORM}
        ref={form}
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          enable.reset();
          begin.mutate();
        }}
      >
        <SchemaFields fields={fields} stored={given} long={LONG} first={FIRST_OF_PAGES} />
      </form>
      <div aria-live="polite">
        {error && <NotSoFar error={error} />}
        {begin.data && (
          <OwnAccount>
            <p>
              <a className="link" href={begin.data} target="_blank" rel="noopener">
                Log in at {name}
              </a>
            </p>
            <Field
              label="Code that you see then"
              value={code}
              autoComplete="off"
              spellCheck={false}
              onChange={(event) => setCode(event.target.value)}
            />
          </OwnAccount>
        )}
      </div>
    </Dialog>
  );
}

/** The account that the test is made with. */
function OwnAccount({ about, children }: { about?: string; children: React.ReactNode }) {
  return (
    <fieldset className={styles.trial}>
      <legend className={styles.legend}>Your own account there</legend>
      <p className="second">
        {about} When the provider is enabled, it becomes another login of the user that you are
        here, and this browser is logged in with it.
      </p>
      {children}
    </fieldset>
  );
}

function NotSoFar({ error }: { error: Error }) {
  return (
    <Notice tone="err" title="It does not work so far, and nothing was changed.">
      {sentence(error)}
    </Notice>
  );
}

function groupsText(groups: readonly string[]): string {
  return groups.length > 0 ? `Groups: ${groups.join("; ")}` : "In no group.";
}

function trialOf(fields: readonly FormField[], data: FormData): ProviderTrial {
  return {
    config: formValues(fields, data),
    username: String(data.get(TRIAL.username) ?? ""),
    password: String(data.get(TRIAL.password) ?? ""),
  };
}
