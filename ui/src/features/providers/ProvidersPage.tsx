/** Where people may log in: the identity providers, tried before they are enabled. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError, sentence } from "../../api/errors.ts";
import { disableProvider, type ProviderConfig, providerConfigsQuery } from "../../api/providers.ts";
import { Button } from "../../ui/Button.tsx";
import { DangerDialog } from "../../ui/DangerDialog.tsx";
import { Notice, Skeleton } from "../../ui/Notice.tsx";
import { Page, PageHead } from "../../ui/Page.tsx";
import { State } from "../../ui/StateMark.tsx";
import { Tag } from "../../ui/Tags.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { providerName } from "../login/providers.ts";
import { accessText, kindOf, offered, providerTone } from "./model.ts";
import styles from "./Providers.module.css";
import { SetUpDialog } from "./SetUpDialog.tsx";

export function ProvidersPage() {
  const configs = useQuery(providerConfigsQuery);
  const [open, setOpen] = useState<{ dialog: "set-up" | "disable"; provider: ProviderConfig }>();
  const close = () => setOpen(undefined);
  const shown = offered(configs.data ?? []);
  return (
    <Page title="Identity providers">
      <PageHead
        title="Identity providers"
        facts="Where people have the accounts that they log in with"
      />
      {configs.isPending && <Skeleton rows={6} what="identity providers" />}
      {configs.isError && <Failure error={configs.error} />}
      {configs.data && shown.length === 0 && (
        <Notice tone="off" title="You may not see how identity providers are set up.">
          That needs the global role Administrator, or Manage Authentication.
        </Notice>
      )}
      {shown.length > 0 && (
        <ul className={styles.list} aria-label="Identity providers">
          {shown.map((provider) => (
            <ProviderLine
              key={provider.id}
              provider={provider}
              onSetUp={() => setOpen({ dialog: "set-up", provider })}
              onDisable={() => setOpen({ dialog: "disable", provider })}
            />
          ))}
        </ul>
      )}
      {shown.length > 0 && (
        <p className="second">
          Local users can always log in. Providers of SAML are reached through a broker that speaks
          OpenID Connect.
        </p>
      )}
      {open?.dialog === "set-up" && <SetUpDialog provider={open.provider} onClose={close} />}
      {open?.dialog === "disable" && <DisableDialog provider={open.provider} onClose={close} />}
    </Page>
  );
}

function Failure({ error }: { error: Error }) {
  const isForbidden = error instanceof ApiError && error.isForbidden;
  return (
    <Notice
      tone={isForbidden ? "off" : "err"}
      title={
        isForbidden
          ? "You may not see how identity providers are set up."
          : "The identity providers could not be read."
      }
    >
      {sentence(error)}
    </Notice>
  );
}

interface ProviderLineProps {
  provider: ProviderConfig;
  onSetUp(): void;
  onDisable(): void;
}

function ProviderLine({ provider, onSetUp, onDisable }: ProviderLineProps) {
  const kind = kindOf(provider);
  const name = providerName(provider.id);
  if (!kind) return null;
  return (
    <li className={styles.line}>
      <span className={styles.state}>
        <State tone={providerTone(provider)}>{provider.enabled ? "Enabled" : "Off"}</State>
      </span>
      <span className="strong">{name}</span>
      {!kind.isTried && <Tag>not tried with the real service</Tag>}
      {provider.enabled && <span className="second">for {accessText(provider)}</span>}
      <span className="grow" />
      <Button small aria-label={`Set up ${name}…`} onClick={onSetUp}>
        Set up…
      </Button>
      {provider.enabled && (
        <Button small aria-label={`Disable ${name}…`} onClick={onDisable}>
          Disable…
        </Button>
      )}
    </li>
  );
}

interface DisableDialogProps {
  provider: ProviderConfig;
  onClose(): void;
}

function DisableDialog({ provider, onClose }: DisableDialogProps) {
  const client = useQueryClient();
  const name = providerName(provider.id);
  const disable = useMutation({
    mutationFn: () => disableProvider(provider),
    onSuccess: () => {
      notify("rem", `Disabled ${name}`);
      void client.invalidateQueries({ queryKey: providerConfigsQuery.queryKey });
      onClose();
    },
  });
  return (
    <DangerDialog
      title={`Disable ${name}?`}
      verb="Disable"
      isPending={disable.isPending}
      failed="It is still enabled."
      failure={disable.error ? sentence(disable.error) : undefined}
      onConfirm={() => disable.mutate()}
      onClose={onClose}
    >
      <p className="second">
        Whoever logged in through it is cut off at once, and its secrets are deleted. Their users
        and roles stay, and hold again when it is enabled.
      </p>
    </DangerDialog>
  );
}
