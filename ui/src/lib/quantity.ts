/** Kubernetes quantities (`250m`, `16Gi`) as numbers, and numbers as displayed text. */

const FACTORS: Record<string, number> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};
const QUANTITY = /^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]{0,2})$/;

/** The number of a quantity; `undefined` if it is absent or invalid. */
export function parse(text: string | null | undefined): number | undefined {
  const match = QUANTITY.exec(text ?? "");
  const factor = FACTORS[match?.[2] ?? "?"];
  const number = Number(match?.[1]);
  return factor === undefined || Number.isNaN(number) ? undefined : number * factor;
}

/** `1,284`. */
export function count(number: number): string {
  return number.toLocaleString("en-GB");
}

/** `0.25 cores`, `4,118 cores`. */
export function cores(number: number): string {
  const digits = number < 10 ? 2 : 0;
  const text = number.toLocaleString("en-GB", { maximumFractionDigits: digits });
  return `${text} ${number === 1 ? "core" : "cores"}`;
}

/** Cores in thousandths, as pods request them: `250m`; from one core on `1.25 cores`. */
export function millicores(number: number): string {
  return number < 1 ? `${count(Math.round(number * 1000))}m` : cores(number);
}

/** Bytes in the binary unit that fits: `17.9 TiB`. */
export function bytes(number: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let value = number;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = value < 100 && unit > 0 ? 1 : 0;
  return `${value.toLocaleString("en-GB", { maximumFractionDigits: digits })} ${units[unit]}`;
}

/** A share in per cent; `undefined` without a whole. */
export function percent(part: number | undefined, whole: number | undefined): number | undefined {
  if (part === undefined || !whole) return undefined;
  return (part / whole) * 100;
}

/** `62%`; a small share is never 0%, and one below the whole never 100%. */
export function percentText(percent: number): string {
  if (percent > 0 && percent < 1) return "<1%";
  if (percent > 99 && percent < 100) return "99%";
  return `${Math.round(percent)}%`;
}
