/** Events of the audit log as displayed text. Pure. */

import type { AuditEvent } from "../../api/types.ts";
import { count } from "../../lib/quantity.ts";
import type { Tone } from "../../ui/StateMark.tsx";

const WORDS: Record<string, string> = {
  "agent-connected": "Agent connected",
  "agent-refused": "Agent refused",
  "agent-registered": "Agent registered",
  api: "API request",
  "audit-read": "Audit log read",
  "credential-refused": "Credentials refused",
  "cross-site-refused": "Other site refused",
  login: "Login",
  "login-refused": "Login refused",
  "login-slowed": "Login slowed down",
  logout: "Logout",
  "password-changed": "Password changed",
  "password-refused": "Password refused",
  proxied: "Cluster request",
  request: "Request",
  suppressed: "Refusals, counted",
  "token-created": "Token created",
  "token-deleted": "Token deleted",
};

/** The kind of the event; for an unknown kind, the server's name. */
export function eventWord({ event }: AuditEvent): string {
  return WORDS[event] ?? event;
}

/** The code of the response; a dash if there was none. */
export function resultWord({ responseStatus }: AuditEvent): string {
  return responseStatus?.code ? String(responseStatus.code) : "—";
}

export function resultTone({ event, responseStatus }: AuditEvent): Tone {
  const code = responseStatus?.code ?? 0;
  if (code >= 500) return "err";
  return code >= 400 || event === "suppressed" ? "warn" : "done";
}

/** The login name if known, else the id, else the name given at a login. */
export function userWord({ user, annotations }: AuditEvent): string {
  return (
    user?.extra?.username?.[0] || user?.username || annotations?.["drover.io/login-name"] || "—"
  );
}

/** The caller's address. */
export function addressWord({ sourceIPs }: AuditEvent): string {
  return sourceIPs?.[0] ?? "—";
}

/** Verb and path. */
export function requestWord({ verb, requestURI }: AuditEvent): string {
  // Some clients send a question mark without parameters.
  return [verb, requestURI?.replace(/\?$/, "")].filter(Boolean).join(" ") || "—";
}

/** Why it was refused, or which events it summarises. */
export function eventReason({ annotations = {} }: AuditEvent): string | undefined {
  const number = Number(annotations["drover.io/suppressed"]);
  if (number > 0) {
    const kinds = annotations["drover.io/suppressed-events"] ?? "";
    return `${count(number)} events of callers without credentials: ${kinds.replaceAll(",", ", ")}`;
  }
  return annotations["drover.io/reason"];
}
