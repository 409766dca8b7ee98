/**
 * Single keys and two-key sequences. Off while typing, while a dialog is open, and when turned off.
 */

import { useEffect, useEffectEvent } from "react";

/** Longest pause between the two keys of a sequence. */
const SEQUENCE_PAUSE_MAX_MS = 1000;

let first = "";
let firstAt = 0;
const handlers = new Map<string, (() => void)[]>();

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.matches("input, textarea, select");
}

function listen(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
  const recent = event.timeStamp - firstAt < SEQUENCE_PAUSE_MAX_MS;
  const sequence = recent && first ? `${first} ${event.key}` : "";
  const found = handlers.get(sequence)?.at(-1) ?? handlers.get(event.key)?.at(-1);
  first = found ? "" : event.key;
  firstAt = event.timeStamp;
  if (!found) return;
  event.preventDefault();
  found();
}

/**
 * Runs `action` on a key (`/`) or two in a row (`g c`). The latest registration takes precedence.
 */
export function useShortcut(keys: string, action: () => void): void {
  const latest = useEffectEvent(action);
  useEffect(() => {
    if (handlers.size === 0) document.addEventListener("keydown", listen);
    const run = () => latest();
    handlers.set(keys, [...(handlers.get(keys) ?? []), run]);
    return () => {
      const left = (handlers.get(keys) ?? []).filter((one) => one !== run);
      if (left.length > 0) handlers.set(keys, left);
      else handlers.delete(keys);
      if (handlers.size === 0) document.removeEventListener("keydown", listen);
    };
  }, [keys]);
}
