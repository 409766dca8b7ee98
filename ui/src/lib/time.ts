/** Times and durations as displayed text. Pure: the current time is a parameter. */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Milliseconds as one number and unit: `8 s`, `4 min`, `3 h`, `12 d`. */
export function length(millis: number): string {
  const time = Math.max(0, millis);
  if (time < MINUTE) return `${Math.floor(time / SECOND)} s`;
  if (time < HOUR) return `${Math.floor(time / MINUTE)} min`;
  if (time < 2 * DAY) return `${Math.floor(time / HOUR)} h`;
  return `${Math.floor(time / DAY)} d`;
}

/** A past time relative to `now`: `just now`, `4 min ago`. */
export function ago(at: Date, now: Date): string {
  const millis = now.getTime() - at.getTime();
  return millis < 5 * SECOND ? "just now" : `${length(millis)} ago`;
}

/** The time of day, `08:45:02`. */
export function clock(at: Date): string {
  return at.toLocaleTimeString("en-GB");
}

/** The time of day, with the day unless it is that of `now`: `08:45:02`, `14 Mar, 08:45:02`. */
export function moment(at: Date, now: Date): string {
  if (at.toDateString() === now.toDateString()) return clock(at);
  return `${at.toLocaleDateString("en-GB", { day: "numeric", month: "short" })}, ${clock(at)}`;
}

/** The day, `14 March 2026`. */
export function day(at: Date): string {
  return at.toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric" });
}

/** To the second with its zone, for tooltips and copies. */
export function exact(at: Date): string {
  return `${day(at)}, ${clock(at)} ${zone(at)}`;
}

function zone(at: Date): string {
  const parts = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" }).formatToParts(at);
  return parts.find((part) => part.type === "timeZoneName")?.value ?? "";
}

/** Parses an RFC 3339 time; `undefined` if the text is not one. */
export function point(text: string | null | undefined): Date | undefined {
  if (!text) return undefined;
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? undefined : at;
}
