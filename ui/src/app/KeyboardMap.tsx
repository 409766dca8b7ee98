/** What each key does. */

import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Key } from "../ui/Tags.tsx";
import styles from "./KeyboardMap.module.css";

const KEYS: [string[], string][] = [
  [["Ctrl", "K"], "Search, jump, act"],
  [["g", "c"], "Go to all clusters"],
  [["g", "o"], "Go to this cluster's overview"],
  [["g", "n"], "Go to this cluster's nodes"],
  [["Ctrl", "`"], "Show or hide the kubectl shells"],
  [["l"], "Logs of this pod"],
  [["s"], "Shell in this pod"],
  [["e"], "Events of this object"],
  [["y"], "YAML of this object"],
  [["/"], "Filter the list"],
  [["Esc"], "Close, or clear the filter"],
  [["?"], "This map"],
];

export function KeyboardMap({ onClose }: { onClose(): void }) {
  return (
    <Dialog
      title="Keyboard map"
      subtitle="Single keys rest while you type."
      onClose={onClose}
      footer={
        <Button data-autofocus onClick={onClose}>
          Close
        </Button>
      }
    >
      <dl className={styles.keys}>
        {KEYS.map(([keys, does]) => (
          <div key={does} className={styles.line}>
            <dt>
              {keys.map((key) => (
                <Key key={key}>{key}</Key>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
