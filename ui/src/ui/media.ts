/** The width there is, for what style sheets cannot decide: which columns a table has. */

import { useMediaQuery } from "@mantine/hooks";

/** As in the style sheets: below it the sidebar is a row of its own. */
const NARROW = "(max-width: 900px)";

/** Below it the widest columns of a full table do not fit beside the names. */
const TIGHT = "(max-width: 1020px)";

/** From here on tables have room for what is good to know. */
const WIDE = "(min-width: 1600px)";

/** Whether tables have columns of what is only good to know. */
export function useWide(): boolean {
  return useMediaQuery(WIDE, false, { getInitialValueInEffect: false });
}

/** Whether tables drop the columns that say least. */
export function useTight(): boolean {
  return useMediaQuery(TIGHT, false, { getInitialValueInEffect: false });
}

/** Whether tables keep only what never goes: state, name and the one figure that says most. */
export function useNarrow(): boolean {
  return useMediaQuery(NARROW, false, { getInitialValueInEffect: false });
}
