/** A directory is set up: the user logs in there for a test before it is enabled for everybody. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { sentence } from "../../api/errors.ts";
import {
  enableProvider,
  type ProviderConfig,
  type ProviderTrial,
  providerConfigQuery,
  providerConfigsQuery,
  testProvider,
} from "../../api/providers.ts";
import { schemaQuery } from "../../api/schemas.ts";
import { Button } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Field } from "../../ui/Field.tsx";
import { Notice, Skeleton } from "../../ui/Notice.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { type FormField, formFields, formValues } from "../forms/fields.ts";
import { SchemaFields } from "../forms/SchemaFields.tsx";
import { providerName } from "../login/providers.ts";
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

interface SetUpDialogProps {
  provider: ProviderConfig;
  onClose(): void;
}

export function SetUpDialog({ provider, onClose }: SetUpDialogProps) {
  const client = useQueryClient();
  const name = providerName(provider.id);
  const form = useRef<HTMLFormElement>(null);
  const schema = useQuery(schemaQuery(provider.type));
  const stored = useQuery(providerConfigQuery(provider));
  const fields = schema.data ? formFields(schema.data, LEFT_OUT) : [];
  const test = useMutation({
    mutationFn: (data: FormData) => testProvider(provider, trialOf(fields, data)),
  });
  const enable = useMutation({
    mutationFn: (data: FormData) => enableProvider(provider, trialOf(fields, data)),
    onSuccess: () => {
      notify("ok", `${name} is enabled`);
      void client.invalidateQueries({ queryKey: providerConfigsQuery.queryKey });
      void client.invalidateQueries({ queryKey: providerConfigQuery(provider).queryKey });
      onClose();
    },
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
      title={`Set up ${name}`}
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
      {!(schema.data && stored.data) && <Skeleton rows={6} what={`the settings of ${name}`} />}
      {schema.data && stored.data && (
        <form
          id={FORM}
          ref={form}
          className={styles.form}
          onSubmit={(event) => {
            event.preventDefault();
            run(enable);
          }}
        >
          <SchemaFields fields={fields} stored={stored.data} long={LONG} first={FIRST} />
          <fieldset className={styles.trial}>
            <legend className={styles.legend}>Your own account there</legend>
            <p className="second">
              It is tried now. When the provider is enabled, it becomes another login of the user
              that you are here, and this browser is logged in with it.
            </p>
            <Field label="User name there" name={TRIAL.username} required autoComplete="off" />
            <Field
              label="Password there"
              name={TRIAL.password}
              type="password"
              required
              autoComplete="new-password"
            />
          </fieldset>
        </form>
      )}
      <div aria-live="polite">
        {error && (
          <Notice tone="err" title="It does not work so far, and nothing was changed.">
            {sentence(error)}
          </Notice>
        )}
        {test.data && (
          <Notice tone="ok" title={`It works: ${test.data.principalId}`}>
            {groupsText(test.data.groupPrincipalIds ?? [])}
          </Notice>
        )}
      </div>
    </Dialog>
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
