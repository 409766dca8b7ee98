/** Parts of a page with outdated data: marks, meters and figures in them have no colour. */

import { createContext, use } from "react";

const PastContext = createContext(false);

/** Whether the data here is outdated. */
export function usePast(): boolean {
  return use(PastContext);
}

interface PastProps {
  when: boolean;
  children: React.ReactNode;
}

/** Marks the content as outdated. Content inside an outdated part is outdated, too. */
export function Past({ when, children }: PastProps) {
  const outside = usePast();
  return <PastContext value={outside || when}>{children}</PastContext>;
}

/** Content that is never outdated: errors of forms, records of events. */
export function Present({ children }: { children: React.ReactNode }) {
  return <PastContext value={false}>{children}</PastContext>;
}

/** The word of an outdated state: `Was ready`. */
export function was(word: string): string {
  return `Was ${word.charAt(0).toLowerCase()}${word.slice(1)}`;
}
