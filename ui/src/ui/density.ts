/**
 * How high the rows of tables are, for this browser. `public/theme.js` applies the choice before the
 * first paint.
 */

import { useSyncExternalStore } from "react";

export type Density = "normal" | "dense";

const KEY = "drover.density";
const listeners = new Set<() => void>();

function current(): Density {
  return document.documentElement.dataset.density === "dense" ? "dense" : "normal";
}

export function useDensity(): Density {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, current);
}

export function chooseDensity(density: Density): void {
  if (density === "normal") {
    delete document.documentElement.dataset.density;
    localStorage.removeItem(KEY);
  } else {
    document.documentElement.dataset.density = density;
    localStorage.setItem(KEY, density);
  }
  for (const listener of listeners) listener();
}
