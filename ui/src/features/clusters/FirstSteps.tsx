/** What is to be done on a new server: its address, its certificate, and the first cluster. */

import { IconPlus } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { mayQuery } from "../../api/access.ts";
import { sentence } from "../../api/errors.ts";
import { settingQuery } from "../../api/queries.ts";
import { changeSetting } from "../../api/settings.ts";
import { isOwnMachine } from "../../lib/addresses.ts";
import { GUIDE } from "../../paths.ts";
import { Button } from "../../ui/Button.tsx";
import { Card } from "../../ui/Card.tsx";
import { Field } from "../../ui/Field.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { State, type Tone } from "../../ui/StateMark.tsx";
import { notify } from "../../ui/Toasts.tsx";
import styles from "./ListPage.module.css";

const SERVER_URL = "server-url";

export function FirstSteps({ onImport }: { onImport(): void }) {
  return (
    <Card title="First steps" flush>
      <ol className={styles.steps}>
        <AddressStep />
        <CertificateStep />
        <Step tone="wait" word="Next" title="Import the first cluster">
          <p className="second">
            One command in a cluster that runs already; it needs no inbound connection.
          </p>
          <div className={styles.address}>
            <Button kind="primary" onClick={onImport}>
              <IconPlus size={16} stroke={1.5} />
              Import first cluster
            </Button>
          </div>
        </Step>
      </ol>
    </Card>
  );
}

interface StepProps {
  tone: Tone;
  word: string;
  title: string;
  children: React.ReactNode;
}

function Step({ tone, word, title, children }: StepProps) {
  return (
    <li className={styles.step}>
      <span className={styles.stepState}>
        <State tone={tone}>{word}</State>
      </span>
      <div className={styles.stepText}>
        <p className="strong">{title}</p>
        {children}
      </div>
    </li>
  );
}

function AddressStep() {
  const { data: url } = useQuery(settingQuery(SERVER_URL));
  const { data: may } = useQuery(mayQuery("update", "settings"));
  const [changing, setChanging] = useState(false);
  if (url === undefined) return null;
  const isOwn = isOwnMachine(url);
  const shown = may !== false && (isOwn || changing);
  return (
    <Step
      tone={isOwn ? "warn" : "ok"}
      word={isOwn ? "Look" : "Done"}
      title="Address of this server"
    >
      <p className="second">
        Agents in clusters and people reach it at <code>{url || "no address"}</code>.
        {isOwn &&
          " Only this computer does: clusters on other machines need a name that they resolve."}
      </p>
      {shown && <AddressForm url={url} onDone={() => setChanging(false)} />}
      {!shown && may && (
        <div className={styles.address}>
          <Button small onClick={() => setChanging(true)}>
            Change…
          </Button>
        </div>
      )}
    </Step>
  );
}

function AddressForm({ url, onDone }: { url: string; onDone(): void }) {
  const client = useQueryClient();
  // Where the browser is may be right for others, too.
  const proposed = isOwnMachine(url) ? location.origin : url;
  const [address, setAddress] = useState(proposed);
  const save = useMutation({
    mutationFn: () => changeSetting(SERVER_URL, address.trim()),
    onSuccess: async () => {
      notify("ok", `The address is ${address.trim()}`);
      await client.invalidateQueries({ queryKey: settingQuery(SERVER_URL).queryKey });
      onDone();
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (!save.isPending) save.mutate();
      }}
    >
      <div className={styles.address}>
        <Field
          label="Address"
          type="url"
          value={address}
          required
          spellCheck={false}
          onChange={(event) => setAddress(event.target.value)}
        />
        <Button type="submit">{save.isPending ? "Under way…" : "Save"}</Button>
      </div>
      {save.isError && (
        <Notice tone="err" title="The address was not changed.">
          {sentence(save.error)}
        </Notice>
      )}
    </form>
  );
}

function CertificateStep() {
  const { data: authority } = useQuery(settingQuery("cacerts"));
  if (authority === undefined) return null;
  const isOwn = authority !== "";
  return (
    <Step tone="ok" word={isOwn ? "Own" : "Done"} title="Certificate">
      <p className="second">
        {isOwn
          ? "This server has an authority of its own: agents and commands check it by themselves, and browsers warn until they trust it. "
          : "Browsers and clusters trust it already. "}
        <a className="link" href={`${GUIDE}guide/tls`}>
          Use a certificate of your own
        </a>
      </p>
    </Step>
  );
}
