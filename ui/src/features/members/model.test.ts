import { expect, test } from "vitest";
import { effectWords, principalOf } from "./model.ts";

test("a member is a principal, whichever field names it", () => {
  const member = { id: "c-1:m", type: "projectRoleTemplateBinding", roleTemplateId: "read-only" };
  expect(principalOf({ ...member, userId: "u-1" })).toBe("local://u-1");
  expect(principalOf({ ...member, userId: "u-1", userPrincipalId: "okta_user://x" })).toBe(
    "okta_user://x",
  );
  expect(principalOf({ ...member, groupPrincipalId: "okta_group://x" })).toBe("okta_group://x");
});

test("the effect of a role names people, and each role once", () => {
  const gain = (role: string) => ({ role, kind: "User" as const, name: "x" });
  const ada = { id: "local://u-1", type: "principal", name: "Ada", principalType: "user" as const };
  const effect = { gains: [gain("member"), gain("view"), gain("member")], groups: [] };
  expect(effectWords(effect, ada)).toEqual({ who: "Ada", gains: ["member", "view"] });
  const team = { ...ada, id: "ldap_group://team", name: "Team", principalType: "group" as const };
  const words = (users: number) =>
    effectWords({ gains: [], groups: [{ group: team.id, users }] }, team).who;
  expect(words(12)).toBe("The members of Team (12 people so far)");
  expect(words(1)).toBe("The members of Team (1 person so far)");
  expect(words(0)).toBe("The members of Team (nobody of it has logged in yet)");
});
