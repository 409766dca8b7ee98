/** The used share of a resource, as a figure with a bar. */

import { percentText } from "../lib/quantity.ts";
import styles from "./Meter.module.css";
import { usePast } from "./Past.tsx";

/** Share from which it is a warning. */
const HOT_PERCENT = 85;
/** Share from which it is full. */
const FULL_PERCENT = 100;

function heat(percent: number): "cool" | "hot" | "full" {
  if (percent >= FULL_PERCENT) return "full";
  return percent >= HOT_PERCENT ? "hot" : "cool";
}

/** A small one for tables. An absent value is “—”, an outdated one has no bar. */
export function Meter({ percent }: { percent: number | undefined }) {
  const past = usePast();
  if (percent === undefined) return <span className="third">—</span>;
  if (past) return <span className="third">{percentText(percent)}</span>;
  return (
    <span className={styles.meter} data-heat={heat(percent)}>
      <Bar percent={percent} width={44} height={5} />
      <span className={styles.figure}>{percentText(percent)}</span>
    </span>
  );
}

/** A large one for cards: two parts of one whole. */
export function WideMeter({ percent, label }: { percent: number | undefined; label: string }) {
  const past = usePast();
  return (
    <div
      className={styles.wide}
      data-heat={past ? "past" : heat(percent ?? 0)}
      role="img"
      aria-label={past ? `${label}, as last known` : label}
    >
      <Bar percent={percent ?? 0} width="100%" height={8} />
    </div>
  );
}

interface BarProps {
  percent: number;
  width: number | string;
  height: number;
}

function Bar({ percent, width, height }: BarProps) {
  const filled = `${Math.min(100, Math.max(0, percent))}%`;
  return (
    <svg width={width} height={height} aria-hidden="true">
      <rect className={styles.track} width="100%" height={height} rx={height / 2} />
      <rect className={styles.fill} width={filled} height={height} rx={height / 2} />
    </svg>
  );
}
