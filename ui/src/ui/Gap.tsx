/** The space of rows of a long table that are not in the document. */

import table from "./Table.module.css";

interface GapProps {
  /** In pixels. */
  height: number;
  columns: number;
}

export function Gap({ height, columns }: GapProps) {
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a row takes no focus.
    <tr className={table.gap} aria-hidden="true">
      <td colSpan={columns}>
        <svg width="1" height={height} aria-hidden="true" />
      </td>
    </tr>
  );
}
