/** A small chart of one quantity over time, with a line for what there is of it. */

import { clock } from "../lib/time.ts";
import styles from "./Chart.module.css";

export interface ChartPoint {
  /** Milliseconds since 1970. */
  at: number;
  value: number;
  whole: number;
  /** What is in use; null where that is not measured. */
  used?: number | null;
}

interface ChartProps {
  points: readonly ChartPoint[];
  /** Longest time between neighbours; a longer one is a gap. Milliseconds. */
  gapMs: number;
  /** What it shows, for those who do not see it. */
  label: string;
}

/** Of the picture, in units of its own; it is as wide as its place. */
const BOX = { width: 320, height: 48, above: 3 };

/** Nothing until there are two points. */
export function Chart({ points, gapMs, label }: ChartProps) {
  const [first, last] = [points[0], points.at(-1)];
  if (!first || !last || first === last) return null;
  const top = Math.max(
    ...points.map(({ value, whole, used }) => Math.max(value, whole, used ?? 0)),
  );
  if (top <= 0) return null;
  const x = ({ at }: ChartPoint) => (BOX.width * (at - first.at)) / (last.at - first.at);
  const y = (value: number) => BOX.height - ((BOX.height - BOX.above) * value) / top;
  const parts = runs(points, gapMs);
  const measured = runs(
    points.filter(({ used }) => used != null),
    gapMs,
  );
  const line = (part: readonly ChartPoint[], of: (point: ChartPoint) => number) =>
    `M${part.map((point) => `${x(point).toFixed(1)} ${y(of(point)).toFixed(1)}`).join(" L")}`;
  return (
    <figure className={styles.chart}>
      <svg
        viewBox={`0 0 ${BOX.width} ${BOX.height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={label}
      >
        {parts.map((part) => {
          const [from, to] = [part[0], part.at(-1)];
          if (!from || !to) return null;
          const above = line(part, ({ value }) => value);
          return (
            <g key={from.at}>
              <path
                className={styles.area}
                d={`${above} L${x(to).toFixed(1)} ${BOX.height} L${x(from).toFixed(1)} ${BOX.height} Z`}
              />
              <path className={styles.value} d={above} />
              <path className={styles.whole} d={line(part, ({ whole }) => whole)} />
            </g>
          );
        })}
        {measured.map((part) => (
          <path key={part[0]?.at} className={styles.used} d={line(part, ({ used }) => used ?? 0)} />
        ))}
      </svg>
      <figcaption className={styles.times}>
        <span>{hourAndMinute(first.at)}</span>
        <span className={styles.legend}>reserved</span>
        {measured.length > 0 && <span className={styles.inUse}>in use</span>}
        <span className={styles.limit}>allocatable</span>
        <span>{hourAndMinute(last.at)}</span>
      </figcaption>
    </figure>
  );
}

/** Points without gaps between them. */
export function runs(points: readonly ChartPoint[], gapMs: number): ChartPoint[][] {
  const parts: ChartPoint[][] = [];
  let before: ChartPoint | undefined;
  for (const point of points) {
    const part = parts.at(-1);
    if (part && before && point.at - before.at <= gapMs) part.push(point);
    else parts.push([point]);
    before = point;
  }
  return parts;
}

function hourAndMinute(at: number): string {
  return clock(new Date(at)).slice(0, 5);
}
