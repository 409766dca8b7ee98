/** What the list of members shows. Pure. */

import type { Member } from "../../api/members.ts";

/** The principal that a role is given to. */
export function principalOf(member: Member): string {
  const { userPrincipalId, groupPrincipalId, userId, groupId } = member;
  return userPrincipalId || groupPrincipalId || (userId ? `local://${userId}` : groupId) || "";
}
