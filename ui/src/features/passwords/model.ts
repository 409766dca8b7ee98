/** Text on passwords and on what a new one ends. Pure. */

import { ApiError, sentence } from "../../api/errors.ts";
import type { PasswordChange } from "../../api/types.ts";
import { count } from "../../lib/quantity.ts";

/** `2 other logins ended. 3 tokens go on.`, as the server counted them. */
export function changeWords(change: PasswordChange, endTokens: boolean): string {
  const { endedTokens, remainingTokens } = change;
  const what = endTokens ? ["login or token", "logins and tokens"] : ["login", "logins"];
  const ended =
    endedTokens === 0
      ? `No other ${what[0]} of yours had to end.`
      : `${count(endedTokens)} other ${endedTokens === 1 ? what[0] : what[1]} of yours ended.`;
  if (remainingTokens === 0) return `${ended} No token of yours goes on.`;
  const go = remainingTokens === 1 ? "token of yours goes" : "tokens of yours go";
  return `${ended} ${count(remainingTokens)} ${go} on, for the API or in a kubeconfig.`;
}

export interface PasswordRefusal {
  /** The field with the problem; none: neither. */
  field: "current" | "new" | undefined;
  text: string;
}

/** Why a password was not set, with the field. */
export function refusalOf(error: Error): PasswordRefusal {
  const text = capital(sentence(error));
  if (!(error instanceof ApiError)) return { field: undefined, text };
  if (error.field === "newPassword") return { field: "new", text };
  if (/current password/.test(error.message)) {
    return { field: "current", text: "That is not your current password." };
  }
  return { field: undefined, text };
}

function capital(text: string): string {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}
