/** Identity providers as administrators set them up. */

import { queryOptions } from "@tanstack/react-query";
import { request } from "./client.ts";
import { pages } from "./queries.ts";
import type { Resource } from "./types.ts";

export interface ProviderConfig extends Resource {
  enabled?: boolean;
  accessMode?: string;
}

/** Who a test found. */
export interface TestedLogin {
  principalId?: string;
  groupPrincipalIds?: string[] | null;
}

/** A login at a provider that is tried with a configuration. */
export interface ProviderTrial {
  config: Record<string, unknown>;
  username: string;
  password: string;
}

export const providerConfigsQuery = queryOptions({
  queryKey: ["provider-configs"],
  queryFn: () => pages<ProviderConfig>("/v3/authConfigs"),
});

function configPath({ type, id }: ProviderConfig): string {
  return `/v3/${type}s/${encodeURIComponent(id)}`;
}

/** The configuration as it is stored, without its secrets. */
export function providerConfigQuery(provider: ProviderConfig) {
  return queryOptions({
    queryKey: ["provider-config", provider.id],
    queryFn: () => request<Record<string, unknown>>("GET", configPath(provider)),
  });
}

/** The field of the input that has the configuration; the directories but one share theirs. */
function trialInput({ type }: ProviderConfig, trial: ProviderTrial): object {
  const { config, username, password } = trial;
  const field = type === "activeDirectoryConfig" ? type : "ldapConfig";
  return { [field]: config, username, password, enabled: true };
}

/** Tries a login; nothing is stored. */
export function testProvider(provider: ProviderConfig, trial: ProviderTrial): Promise<TestedLogin> {
  return request("POST", `${configPath(provider)}?action=test`, trialInput(provider, trial));
}

/** Tries a login, and enables the provider if it succeeds. */
export function enableProvider(provider: ProviderConfig, trial: ProviderTrial): Promise<unknown> {
  return request(
    "POST",
    `${configPath(provider)}?action=testAndApply`,
    trialInput(provider, trial),
  );
}

export function disableProvider(provider: ProviderConfig): Promise<unknown> {
  return request("POST", `${configPath(provider)}?action=disable`, {});
}

/** Begins a test on the provider's own pages; returns their address. Nothing is stored. */
export async function beginPagesTest(
  provider: ProviderConfig,
  config: Record<string, unknown>,
): Promise<string> {
  const path = `${configPath(provider)}?action=configureTest`;
  const { redirectUrl } = await request<{ redirectUrl: string }>("POST", path, config);
  if (!/^https?:/.test(redirectUrl)) throw new Error(`“${redirectUrl}” is no web address.`);
  return redirectUrl;
}

/** Ends a test with the code that the provider's pages led to, and enables the provider. */
export function enableWithCode(
  provider: ProviderConfig,
  config: Record<string, unknown>,
  code: string,
): Promise<unknown> {
  const field = provider.type === "azureADConfig" ? "config" : provider.type;
  const input = { [field]: config, code, enabled: true };
  return request("POST", `${configPath(provider)}?action=testAndApply`, input);
}
