/** The clicks of a user, over all pages of their browser. */

import type { Visitor } from "./world.ts";

/** Counts clicks from now on; call it before the first page is opened. */
export async function countClicks(visitor: Visitor): Promise<() => number> {
  let clicks = 0;
  await visitor.context.exposeBinding("countClick", () => {
    clicks += 1;
  });
  await visitor.context.addInitScript(() => {
    const { countClick } = window as unknown as { countClick(): void };
    // A label's click has a second one, of its field, which nobody made.
    addEventListener("click", (event) => event.detail > 0 && countClick(), { capture: true });
  });
  return () => clicks;
}
