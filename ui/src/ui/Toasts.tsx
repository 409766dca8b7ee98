/**
 * Results of the user's actions, bottom right: successes disappear by themselves, failures stay. A
 * result is never shown only here.
 */

import { IconX } from "@tabler/icons-react";
import { useSyncExternalStore } from "react";
import { IconButton } from "./Button.tsx";
import { Shape, type Tone } from "./StateMark.tsx";
import styles from "./Toasts.module.css";

const SHOWN_MS = 6000;

interface Toast {
  id: number;
  tone: Tone;
  text: string;
}

let toasts: readonly Toast[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

function dismiss(id: number): void {
  set(toasts.filter((toast) => toast.id !== id));
}

/** Shows the result of an action. */
export function notify(tone: "ok" | "err" | "rem", text: string): void {
  lastId += 1;
  const id = lastId;
  set([...toasts, { id, tone, text }]);
  if (tone !== "err") setTimeout(() => dismiss(id), SHOWN_MS);
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <section className={styles.toasts} aria-label="Results" aria-live="polite">
      {shown.map(({ id, tone, text }) => (
        <div key={id} className={styles.toast}>
          <Shape tone={tone} />
          <span className="grow">{text}</span>
          <IconButton label="Dismiss" onClick={() => dismiss(id)}>
            <IconX size={16} stroke={1.5} />
          </IconButton>
        </div>
      ))}
    </section>
  );
}
