/** What the page of settings says of each. Pure. */

import type { ServerSetting } from "../../api/settings.ts";

/** What the settings do that the server acts on. */
const ABOUT: Record<string, string> = {
  "agent-image": "Image of the agents in clusters.",
  "agent-rollout-timeout": "How long the rollout of an agent may take.",
  "auth-token-max-ttl-minutes": "Longest life of a token, in minutes; 0 is no limit.",
  "auth-user-info-max-age-seconds":
    "How old the groups of a user may be before they are read again.",
  "auth-user-session-ttl-minutes": "How long a login holds, in minutes.",
  cacerts: "The certificates that agents and clients trust. The server keeps it.",
  "kubeconfig-default-token-ttl-minutes": "Life of tokens in kubeconfigs, in minutes; 0 is no end.",
  "kubeconfig-generate-token": "Whether a kubeconfig has a token, or logs in when it is used.",
  "kubeconfig-token-ttl-minutes": "Life of the tokens that kubeconfigs log in for, in minutes.",
  "kubectl-shell": "Whether people can open shells with kubectl in clusters.",
  "password-min-length": "Least characters of a password.",
  "server-url": "The address by which agents and browsers reach this server.",
  "server-version": "The running version.",
  "shell-image": "The image of kubectl shells.",
  "system-default-registry": "Registry that the agents' images come from.",
  "system-namespaces": "Namespaces that belong to the project System.",
};

export function about({ id }: ServerSetting): string | undefined {
  return ABOUT[id];
}

/** The value that holds. */
export function currentValue({ value, default: usual }: ServerSetting): string {
  return value || usual || "";
}

/** Why nobody changes it here; nothing if somebody may. */
export function fixedBecause({ id, source }: ServerSetting): string | undefined {
  if (source === "env") return "The server's environment sets it: change it there.";
  return id === "cacerts" ? "It follows the server's certificate." : undefined;
}
