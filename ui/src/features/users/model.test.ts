import { expect, test } from "vitest";
import type { KnownUser } from "../../api/users.ts";
import { loginOf, matching, nameOf, randomPassword, rolesOf, userWord } from "./model.ts";

const user = (id: string, more: Partial<KnownUser> = {}): KnownUser => ({
  id,
  type: "user",
  ...more,
});

test("a user is shown with the name, the login and the state", () => {
  const ada = user("u-1", {
    name: "Ada",
    username: "ada",
    principalIds: ["local://u-1", "openldap_user://uid=ada"],
  });
  expect([nameOf(ada), loginOf(ada), userWord(ada)]).toEqual(["Ada", "ada, openldap", "Active"]);
  expect(userWord(user("u-2", { enabled: false }))).toBe("Disabled");
  expect(nameOf(user("u-2"))).toBe("u-2");
  expect(loginOf(user("u-2"))).toBe("—");
});

test("the roles of a user are their own, by name", () => {
  const binding = (id: string, userId: string, globalRoleId: string) => ({
    id,
    type: "globalRoleBinding",
    userId,
    globalRoleId,
  });
  const bindings = [
    binding("b", "u-1", "user"),
    binding("a", "u-1", "admin"),
    binding("c", "u-2", "admin"),
  ];
  const roles = [{ id: "admin", type: "globalRole", name: "Administrator" }];
  expect(rolesOf(user("u-1"), bindings, roles)).toEqual([
    { bindingId: "a", name: "Administrator" },
    { bindingId: "b", name: "user" },
  ]);
});

test("a search finds all words in any order", () => {
  const users = [user("u-2", { name: "Ben Ode" }), user("u-1", { name: "Ada", username: "ode" })];
  expect(matching(users, "ode").map(({ id }) => id)).toEqual(["u-1", "u-2"]);
  expect(matching(users, "ode ben").map(({ id }) => id)).toEqual(["u-2"]);
});

test("random passwords are long and differ", () => {
  const [one, other] = [randomPassword(), randomPassword()];
  expect(one).toMatch(/^[a-zA-Z2-9]{16}$/);
  expect(one).not.toBe(other);
});
