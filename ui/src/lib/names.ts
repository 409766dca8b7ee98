/** Short forms of names, and the rules names follow. */

/** Two letters for a cluster's mark: of its first two words, else its first two letters. */
export function monogram(name: string): string {
  const words = name.split(/[^a-zA-Z0-9]+/).filter(Boolean);
  const [first = "", second = ""] = words;
  const letters = second ? first.charAt(0) + second.charAt(0) : first.slice(0, 2);
  return letters.toUpperCase();
}

/** The pattern of cluster names in the API. */
const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const LABEL_LENGTH_MAX = 63;

/** The problem of a name, and a similar valid one, if there is one. */
export interface NameProblem {
  text: string;
  suggestion?: string;
}

/** Validates a cluster's name. `taken`: names of other clusters. */
export function nameProblem(name: string, taken: readonly string[]): NameProblem | undefined {
  if (!name) return { text: "A cluster needs a name." };
  if (name.length > LABEL_LENGTH_MAX) {
    return { text: `At most ${LABEL_LENGTH_MAX} characters; these are ${name.length}.` };
  }
  if (!LABEL.test(name)) {
    const suggestion = asLabel(name);
    const text = "Only a–z, 0–9 and “-”, with a letter or digit at both ends.";
    return suggestion && !taken.includes(suggestion) ? { text, suggestion } : { text };
  }
  return taken.includes(name) ? { text: "Another cluster has this name." } : undefined;
}

function asLabel(name: string): string {
  const plain = name.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  return plain.replace(/^-+|-+$/g, "").slice(0, LABEL_LENGTH_MAX);
}
