/** What the page of drivers shows. Pure. */

import type { ClusterDriver, DriverFields } from "../../api/drivers.ts";
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

/** Those of the fields that differ from what the driver has. */
export function changedFields(driver: ClusterDriver, fields: DriverFields): Partial<DriverFields> {
  const former: DriverFields = {
    url: driver.url ?? "",
    name: driver.name ?? "",
    checksum: driver.checksum ?? "",
    uiUrl: driver.uiUrl ?? "",
    whitelistDomains: driver.whitelistDomains ?? [],
  };
  const names = Object.keys(former) as (keyof DriverFields)[];
  const changed = names.filter((name) => String(fields[name]) !== String(former[name]));
  return Object.fromEntries(changed.map((name) => [name, fields[name]]));
}

/** The hosts of a text with spaces, commas or lines between them. */
export function hostsOf(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}
