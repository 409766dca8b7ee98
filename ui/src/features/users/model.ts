/** What the page of users shows. Pure. */

import type { GlobalRoleBinding, KnownRole, KnownUser } from "../../api/users.ts";
import type { Tone } from "../../ui/StateMark.tsx";

/** The name that is shown of a user. */
export function nameOf({ name, username, id }: KnownUser): string {
  return name || username || id;
}

/** Whether a user may log in. */
export function isEnabled({ enabled }: KnownUser): boolean {
  return enabled !== false;
}

export function userTone(user: KnownUser): Tone {
  if (user.state === "removing") return "rem";
  return isEnabled(user) ? "ok" : "done";
}

export function userWord(user: KnownUser): string {
  if (user.state === "removing") return "Removing";
  return isEnabled(user) ? "Active" : "Disabled";
}

/** Where a user logs in: with a name here, or at identity providers. */
export function loginOf({ username, principalIds }: KnownUser): string {
  const foreign = (principalIds ?? []).filter((id) => !id.startsWith("local://"));
  const providers = foreign.map((id) => id.split("_user://")[0]).filter(Boolean);
  return [username, ...new Set(providers)].filter(Boolean).join(", ") || "—";
}

export interface HeldRole {
  bindingId: string;
  name: string;
}

/** The global roles of a user. */
export function rolesOf(
  { id }: KnownUser,
  bindings: readonly GlobalRoleBinding[],
  roles: readonly KnownRole[],
): HeldRole[] {
  const names = new Map(roles.map((role) => [role.id, role.name]));
  return bindings
    .filter(({ userId }) => userId === id)
    .map((binding) => ({
      bindingId: binding.id,
      name: names.get(binding.globalRoleId) ?? binding.globalRoleId,
    }))
    .sort((one, other) => one.name.localeCompare(other.name));
}

/** The roles of each group, by the id of its principal, in the order of these ids. */
export function byGroup(
  bindings: readonly GlobalRoleBinding[],
): [group: string, held: GlobalRoleBinding[]][] {
  const groups = new Map<string, GlobalRoleBinding[]>();
  for (const binding of bindings) {
    const group = binding.groupPrincipalId;
    if (group) groups.set(group, [...(groups.get(group) ?? []), binding]);
  }
  return [...groups].sort(([one], [other]) => one.localeCompare(other));
}

/** Users whose name, login or id has each word. */
export function matching(users: readonly KnownUser[], text: string): KnownUser[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = users.filter((user) => {
    const all = `${user.name} ${user.username} ${user.id} ${user.principalIds}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
  return found.sort((one, other) => nameOf(one).localeCompare(nameOf(other)));
}

const PASSWORD_LENGTH = 16;
/** Without letters and digits that look alike. */
const LETTERS = "abcdefghjkmnpqrstuvwxyzABCDEFGHJKMNPQRSTUVWXYZ23456789";

/** A random password. */
export function randomPassword(): string {
  let password = "";
  while (password.length < PASSWORD_LENGTH) {
    for (const byte of crypto.getRandomValues(new Uint8Array(PASSWORD_LENGTH))) {
      // Larger ones would make the first letters more likely.
      if (byte < 256 - (256 % LETTERS.length)) password += LETTERS[byte % LETTERS.length];
    }
  }
  return password.slice(0, PASSWORD_LENGTH);
}

/** Where roles are given. */
export type RoleKind = "global" | "cluster" | "project";

export const ROLE_KINDS: readonly { name: RoleKind; text: string }[] = [
  { name: "global", text: "On the server" },
  { name: "cluster", text: "In clusters" },
  { name: "project", text: "In projects" },
];
