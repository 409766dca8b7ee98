/** Parts of a page that show what was last known: marks, meters and figures in them lose their colour. */

import { createContext, use } from "react";

const PastContext = createContext(false);

/** Whether what shows here is only the last that was known. */
export function usePast(): boolean {
  return use(PastContext);
}

interface PastProps {
  when: boolean;
  children: React.ReactNode;
}

/** Everything within is as last known. Whatever is within something past is past, too. */
export function Past({ when, children }: PastProps) {
  const outside = usePast();
  return <PastContext value={outside || when}>{children}</PastContext>;
}

/** What stays true whatever is known of the rest: errors of forms, records of what happened. */
export function Present({ children }: { children: React.ReactNode }) {
  return <PastContext value={false}>{children}</PastContext>;
}

/** The word of a state as it was: `Was ready`. */
export function was(word: string): string {
  return `Was ${word.charAt(0).toLowerCase()}${word.slice(1)}`;
}
