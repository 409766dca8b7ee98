/** What is known of each kind of identity provider. Pure. */

import type { ProviderConfig } from "../../api/providers.ts";
import { GUIDE } from "../../paths.ts";
import type { Tone } from "../../ui/StateMark.tsx";

export interface ProviderKind {
  /** Whether it was tried with the real service or program, and not only with a stand-in. */
  isTried: boolean;
  /** Whether it is set up here: the others send the browser to pages of their own. */
  isDirectory: boolean;
  /** The page of the guide that says how. */
  guide: string;
}

/** As in docs/compat/identity-providers.md. */
const KINDS: Record<string, ProviderKind> = {
  openldap: { isTried: true, isDirectory: true, guide: "directories" },
  freeipa: { isTried: false, isDirectory: true, guide: "directories" },
  activedirectory: { isTried: false, isDirectory: true, guide: "directories" },
  oidc: { isTried: true, isDirectory: false, guide: "open-id-connect" },
  keycloakoidc: { isTried: true, isDirectory: false, guide: "open-id-connect" },
  github: { isTried: false, isDirectory: false, guide: "github" },
  azuread: { isTried: false, isDirectory: false, guide: "microsoft" },
  googleoauth: { isTried: false, isDirectory: false, guide: "google" },
};

/** What is known of a provider; nothing: it cannot be enabled. */
export function kindOf({ id }: ProviderConfig): ProviderKind | undefined {
  return KINDS[id];
}

export function guideOf({ guide }: ProviderKind): string {
  return `${GUIDE}guide/${guide}`;
}

export function providerTone({ enabled }: ProviderConfig): Tone {
  return enabled ? "ok" : "done";
}

const MODES: Record<string, string> = {
  unrestricted: "everybody with an account there",
  restricted: "members of clusters and projects, and those named here",
  required: "those named here",
};

/** Who may log in. */
export function accessText({ accessMode = "" }: ProviderConfig): string {
  return MODES[accessMode] ?? accessMode;
}

/** Those that can be enabled, enabled ones first. */
export function offered(configs: readonly ProviderConfig[]): ProviderConfig[] {
  const known = configs.filter((config) => kindOf(config));
  return known.sort(
    (one, other) =>
      Number(other.enabled ?? false) - Number(one.enabled ?? false) ||
      one.id.localeCompare(other.id),
  );
}
