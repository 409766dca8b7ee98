/** Pinned clusters, stored in the browser. */

import { useSyncExternalStore } from "react";

const KEY = "drover.pinned";
const listeners = new Set<() => void>();
let pinned: readonly string[] = read();

function read(): readonly string[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(stored) ? stored.filter((id) => typeof id === "string") : [];
  } catch {
    return [];
  }
}

/** Ids of the pinned clusters, in the order in which they were pinned. */
export function usePins(): readonly string[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => pinned,
  );
}

export function togglePin(id: string): void {
  pinned = pinned.includes(id) ? pinned.filter((one) => one !== id) : [...pinned, id];
  localStorage.setItem(KEY, JSON.stringify(pinned));
  for (const listener of listeners) listener();
}
