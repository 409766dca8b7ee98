/** A world with one active cluster and many that wait for their agent. */

import type { World } from "./world.ts";

export const WAITING = 300;
/** Each cluster gets its namespace and projects at once, in a build without optimizations. */
export const FLEET_TIME_MAX_MS = 300_000;
/** Created concurrently. */
const BATCH = 10;

/** The active one is `zulu`, the others are `edge-1` to `edge-300`. */
export async function startFleet(world: World): Promise<void> {
  await world.start();
  const visitor = await world.visitor();
  await visitor.signIn();
  await world.run(await visitor.importCommand("zulu"));
  for (let made = 0; made < WAITING; made += BATCH) {
    const names = Array.from({ length: BATCH }, (_, index) => `edge-${made + index + 1}`);
    await Promise.all(names.map((name) => visitor.api("POST", "/v3/clusters", { name })));
  }
  await visitor.leave();
}
