/** What the page of drivers shows. Pure. */

import type { ClusterDriver } from "../../api/drivers.ts";
import type { Tone } from "../../ui/StateMark.tsx";

export function driverTone({ state, transitioning }: ClusterDriver): Tone {
  if (transitioning === "error") return "err";
  if (transitioning === "yes") return state === "removing" ? "rem" : "run";
  return state === "active" ? "ok" : "off";
}

/** The state, as a word that begins a line. */
export function driverWord({ state = "" }: ClusterDriver): string {
  return state.charAt(0).toUpperCase() + state.slice(1);
}

export function driverName({ name, id }: ClusterDriver): string {
  return name || id;
}

export function byName(drivers: readonly ClusterDriver[]): ClusterDriver[] {
  return [...drivers].sort((one, other) => driverName(one).localeCompare(driverName(other)));
}

/** The hosts of a text with spaces, commas or lines between them. */
export function hostsOf(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}
