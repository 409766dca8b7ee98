/** The picture beside the login: a herd that walks to one point. */

import styles from "./LoginPage.module.css";

const ROWS = 11;
const COLUMNS = 15;
const WIDTH = 880;
const HEIGHT = 900;
/** Where they meet, right of the picture's edge. */
const GOAL = { x: WIDTH + 40, y: 460 };

interface Dot {
  key: string;
  x: number;
  y: number;
  radius: number;
  opacity: number;
}

/** Rows bend towards the goal the nearer they come; dots shrink and darken on the way. */
function dots(): Dot[] {
  const found: Dot[] = [];
  for (let row = 0; row < ROWS; row += 1) {
    const start = 150 + (row / (ROWS - 1)) * 620;
    for (let column = 0; column < COLUMNS; column += 1) {
      const way = column / (COLUMNS - 1);
      const bend = way ** 1.8;
      const lag = Math.abs(row - (ROWS - 1) / 2) / ROWS;
      found.push({
        key: `${row}-${column}`,
        x: -20 + way * (GOAL.x - 20) - lag * way * 60,
        y: start + (GOAL.y - start) * bend * 0.9,
        radius: 6.2 - way * 2.6,
        opacity: 0.1 + way * 0.34,
      });
    }
  }
  return found;
}

export function HerdArt() {
  return (
    <svg
      className={styles.herd}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="xMaxYMid slice"
      aria-hidden="true"
    >
      {dots().map(({ key, x, y, radius, opacity }) => (
        <circle key={key} cx={x} cy={y} r={radius} fillOpacity={opacity} />
      ))}
    </svg>
  );
}
