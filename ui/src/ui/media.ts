/** The width there is, for what style sheets cannot decide: which columns a table has. */

import { useMediaQuery } from "@mantine/hooks";

/** As in the style sheets: below it the sidebar is a row of its own. */
const NARROW = "(max-width: 900px)";

/** Whether tables keep only what never goes: state, name and the one figure that says most. */
export function useNarrow(): boolean {
  return useMediaQuery(NARROW, false, { getInitialValueInEffect: false });
}
