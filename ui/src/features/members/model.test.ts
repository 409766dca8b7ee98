import { expect, test } from "vitest";
import { principalOf } from "./model.ts";

test("a member is a principal, whichever field names it", () => {
  const member = { id: "c-1:m", type: "projectRoleTemplateBinding", roleTemplateId: "read-only" };
  expect(principalOf({ ...member, userId: "u-1" })).toBe("local://u-1");
  expect(principalOf({ ...member, userId: "u-1", userPrincipalId: "okta_user://x" })).toBe(
    "okta_user://x",
  );
  expect(principalOf({ ...member, groupPrincipalId: "okta_group://x" })).toBe("okta_group://x");
});
