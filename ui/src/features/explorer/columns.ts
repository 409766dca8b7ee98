/** Which columns a user wants to see of a kind; kept in the browser, like pins. */

import { useSyncExternalStore } from "react";

const KEY = "drover.columns";
const listeners = new Set<() => void>();
type Choices = Readonly<Record<string, readonly string[]>>;
let choices: Choices = read();

function read(): Choices {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    if (typeof stored !== "object" || stored === null) return {};
    const lists = Object.entries(stored).filter(([, names]) => Array.isArray(names));
    return Object.fromEntries(lists.map(([type, names]) => [type, names.map(String)]));
  } catch {
    return {};
  }
}

/** Names of the chosen columns; nothing: the usual ones. */
export function useChosenColumns(type: string): readonly string[] | undefined {
  const all = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => choices,
  );
  return all[type];
}

/** Nothing: the usual ones again. */
export function chooseColumns(type: string, names: readonly string[] | undefined): void {
  const { [type]: _, ...others } = choices;
  choices = names ? { ...others, [type]: names } : others;
  localStorage.setItem(KEY, JSON.stringify(choices));
  for (const listener of listeners) listener();
}
