/** Times on pages: relative and updated, exact on hover. */

import { useEffect, useState } from "react";
import { ago, exact } from "../lib/time.ts";

/** The current time, updated every `everyMs`. */
export function useNow(everyMs: number): Date {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

export function Ago({ at, now }: { at: Date; now: Date }) {
  return (
    <time dateTime={at.toISOString()} title={exact(at)}>
      {ago(at, now)}
    </time>
  );
}
