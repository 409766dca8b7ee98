/** What runs here: versions, addresses, licences. */

import { useQuery } from "@tanstack/react-query";
import { apiVersionQuery } from "../api/queries.ts";
import { settingsQuery } from "../api/settings.ts";
import { GUIDE } from "../paths.ts";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import styles from "./AboutDialog.module.css";

/** Settings that say what runs, and what they are called here. */
const FACTS = {
  "server-version": "Answers clients as Rancher",
  "server-url": "Server URL",
  "install-uuid": "Installation",
} as const;

export function AboutDialog({ onClose }: { onClose(): void }) {
  const { data: settings = [] } = useQuery(settingsQuery);
  const { data: version } = useQuery(apiVersionQuery);
  const value = (id: string) => {
    const setting = settings.find((one) => one.id === id);
    return setting?.value || setting?.default || "—";
  };
  const rows: [string, string][] = [
    ["Version", __VERSION__],
    ["Management API", version ? `Kubernetes ${version}` : "—"],
    ...Object.entries(FACTS).map(([id, name]): [string, string] => [name, value(id)]),
  ];
  return (
    <Dialog
      title="About Drover"
      onClose={onClose}
      footer={
        <Button data-autofocus onClick={onClose}>
          Close
        </Button>
      }
    >
      <dl className={styles.facts}>
        {rows.map(([name, text]) => (
          <div key={name} className={styles.fact}>
            <dt className="second">{name}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <p className={styles.licences}>
        Drover is open source under the Apache License 2.0. This interface contains{" "}
        <a className="link" href="/licences.txt">
          software of others
        </a>
        ; what the programs contain is in the bill of materials of each release,{" "}
        <code>drover.cdx.json</code>. How to use it is in the{" "}
        <a className="link" href={GUIDE}>
          guide
        </a>
        .
      </p>
    </Dialog>
  );
}
