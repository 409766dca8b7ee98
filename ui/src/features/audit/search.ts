/** The filters of the audit page in its address. */

export const KINDS = {
  all: { text: "All", query: "" },
  refused: { text: "Refused or failed", query: "status=4xx" },
  logins: { text: "Logins", query: "event=login" },
  "failed-logins": { text: "Failed logins", query: "event=login-refused" },
  clusters: { text: "Into clusters", query: "event=proxied" },
} as const;

export type AuditKind = keyof typeof KINDS;

export interface AuditSearch {
  kind?: AuditKind;
  /** Login name or id. */
  user?: string;
  /** An IP address. */
  from?: string;
}

/** Reads the known filters of an address, and ignores the rest. */
export function readAuditSearch(raw: Record<string, unknown>): AuditSearch {
  const search: AuditSearch = {};
  const kind = Object.keys(KINDS).find((known) => known === raw.kind && known !== "all");
  if (kind) search.kind = kind as AuditKind;
  // A name of digits is parsed as a number.
  if (raw.user) search.user = String(raw.user);
  if (raw.from) search.from = String(raw.from);
  return search;
}

/** The query of the first page. `clusterId`: only events of this cluster. */
export function auditQueryString(search: AuditSearch, clusterId?: string): string {
  const query = new URLSearchParams(KINDS[search.kind ?? "all"].query);
  if (clusterId) query.set("clusterId", clusterId);
  if (search.user) query.set("user", search.user);
  if (search.from) query.set("address", search.from);
  return query.toString();
}
