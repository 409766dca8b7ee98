/** What the list of members shows. Pure. */

import type { Effect, FoundPrincipal, Member } from "../../api/members.ts";
import { count } from "../../lib/quantity.ts";

/** The principal that a role is given to. */
export function principalOf(member: Member): string {
  const { userPrincipalId, groupPrincipalId, userId, groupId } = member;
  return userPrincipalId || groupPrincipalId || (userId ? `local://${userId}` : groupId) || "";
}

/** Who gains which roles, by their ids. */
export function effectWords(
  { gains, groups }: Effect,
  { name, loginName, principalType, id }: FoundPrincipal,
): { who: string; gains: string[] } {
  const called = name || loginName || id;
  const roles = [...new Set(gains.map(({ role }) => role))];
  if (principalType !== "group") return { who: called, gains: roles };
  const users = groups.find(({ group }) => group === id)?.users ?? 0;
  const people =
    users === 0
      ? "nobody of it has logged in yet"
      : `${count(users)} ${users === 1 ? "person" : "people"} so far`;
  return { who: `The members of ${called} (${people})`, gains: roles };
}
