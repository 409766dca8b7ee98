/** Checks of addresses. Pure. */

/** Names that resolve to a loopback address on every machine. */
const OWN_NAMES = ["localhost", "localhost.localdomain"];

/**
 * Whether a URL leads each machine to itself, so that other machines cannot reach the server by it.
 */
export function isOwnMachine(url: string): boolean {
  const host = hostOf(url);
  if (host === undefined) return false;
  const name = host.replace(/\.$/, "");
  return (
    OWN_NAMES.includes(name) ||
    name.endsWith(".localhost") ||
    /^127\.\d+\.\d+\.\d+$/.test(name) ||
    name === "0.0.0.0" ||
    name === "[::1]" ||
    name === "[::]"
  );
}

/** The port of a URL, with its colon; empty if it is the default one. */
export function portOf(url: string): string {
  const port = URL.canParse(url) ? new URL(url).port : "";
  return port && `:${port}`;
}

function hostOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname.toLowerCase() : undefined;
}
