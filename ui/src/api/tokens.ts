/** The logins and tokens of the signed-in user. */

import { queryOptions } from "@tanstack/react-query";
import { request } from "./client.ts";
import { pages } from "./queries.ts";
import type { Resource } from "./types.ts";

export interface ApiToken extends Resource {
  description?: string | null;
  /** The login of this browser. */
  current?: boolean;
  expired?: boolean;
  /** Empty: never. */
  expiresAt?: string | null;
  lastUsedAt?: string | null;
  /** Made by the user, in place of a login. */
  isDerived?: boolean;
  /** The only cluster that it is for; nothing: everything that the user may do. */
  clusterId?: string | null;
  projectId?: string | null;
  /** The key, in the response to its creation only. */
  token?: string;
}

export interface NewToken {
  description: string;
  /** Milliseconds; 0: it never expires. */
  ttl: number;
  clusterId?: string;
  projectId?: string;
}

export const tokensQuery = queryOptions({
  queryKey: ["tokens"],
  queryFn: () => pages<ApiToken>("/v3/tokens"),
});

export function createToken(token: NewToken): Promise<ApiToken> {
  return request("POST", "/v3/tokens", token);
}

export function deleteToken(id: string): Promise<unknown> {
  return request("DELETE", `/v3/tokens/${encodeURIComponent(id)}`);
}
