/** What identity providers are called, and where a login at one begins. */

import type { LoginProvider } from "../../api/types.ts";

const NAMES: Record<string, string> = {
  activedirectory: "Active Directory",
  azuread: "Microsoft",
  freeipa: "FreeIPA",
  github: "GitHub",
  googleoauth: "Google",
  keycloakoidc: "Keycloak",
  local: "Local",
  oidc: "OpenID Connect",
  openldap: "OpenLDAP",
};

export function providerName(id: string): string {
  return NAMES[id] ?? id;
}

/** The page where the browser logs in; it comes back to `to`. */
export function startAddress(provider: LoginProvider, to: string | undefined): string {
  const { pathname } = new URL(provider.redirectUrl ?? "/", window.location.href);
  return to ? `${pathname}?to=${encodeURIComponent(to)}` : pathname;
}
