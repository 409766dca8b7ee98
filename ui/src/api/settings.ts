/** Settings of the whole server. */

import { queryOptions } from "@tanstack/react-query";
import { request } from "./client.ts";
import { pages } from "./queries.ts";
import type { Resource } from "./types.ts";

export interface ServerSetting extends Resource {
  name?: string;
  value?: string | null;
  default?: string | null;
  /** Whether the value is not the default. */
  customized?: boolean;
  /** `env`: from the environment of the server, which alone changes it. */
  source?: string | null;
}

export const settingsQuery = queryOptions({
  queryKey: ["settings"],
  queryFn: async () => {
    const all = await pages<ServerSetting>("/v3/settings");
    return all.sort((one, other) => one.id.localeCompare(other.id));
  },
});

/** Sets a value; an empty one is the default again. */
export function changeSetting(id: string, value: string): Promise<ServerSetting> {
  return request("PUT", `/v3/settings/${encodeURIComponent(id)}`, { value });
}
