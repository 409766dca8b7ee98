/** Why a login on the pages of an identity provider failed, by the words of the server. */

interface Failure {
  title: string;
  text: string;
}

const AGAIN = "Try again; if it stays so, sign in with a local account and tell an administrator.";

export const FAILURES = {
  busy: { title: "Too many logins at once.", text: "Try again in a few seconds." },
  denied: { title: "The identity provider did not let you in.", text: "You can try again." },
  disabled: { title: "This user is disabled.", text: "An administrator can enable it again." },
  error: { title: "Signing in did not work.", text: "The server's log says why." },
  expired: {
    title: "This login took too long, or was begun in another browser.",
    text: "Begin it again here.",
  },
  notAllowed: {
    title: "You may not sign in here.",
    text: "The identity provider knows you, but an administrator has to allow you to sign in.",
  },
  refused: { title: "The identity provider's answer was not accepted.", text: AGAIN },
  unreachable: { title: "The identity provider cannot be used now.", text: AGAIN },
} as const satisfies Record<string, Failure>;

export type LoginFailure = keyof typeof FAILURES;

/** The failure of this word; other words mean none, because any link could have them. */
export function readFailure(word: unknown): LoginFailure | undefined {
  return Object.keys(FAILURES).find((known): known is LoginFailure => known === word);
}
