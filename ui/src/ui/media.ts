/** The available width, for decisions outside style sheets: the columns of a table. */

import { useMediaQuery } from "@mantine/hooks";

/** As in the style sheets: below it the sidebar is a row of its own. */
const NARROW = "(max-width: 900px)";

/** Below it the widest columns of a full table do not fit beside the names. */
const TIGHT = "(max-width: 1020px)";

/** From here on tables have room for secondary columns. */
const WIDE = "(min-width: 1600px)";

/** Whether tables have secondary columns. */
export function useWide(): boolean {
  return useMediaQuery(WIDE, false, { getInitialValueInEffect: false });
}

/** Whether tables omit the least important columns. */
export function useTight(): boolean {
  return useMediaQuery(TIGHT, false, { getInitialValueInEffect: false });
}

/** Whether tables show only the essential columns: state, name and the most important figure. */
export function useNarrow(): boolean {
  return useMediaQuery(NARROW, false, { getInitialValueInEffect: false });
}
