/** A directory is set up in the browser: tested, enabled, used for a login, disabled. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { Slapd } from "./directory.ts";
import { World } from "./world.ts";

const world = new World(["--clusters", "1", "--nodes", "1"]);
const slapd = new Slapd();

beforeAll(() => Promise.all([world.start(), slapd.start(world.folder)]));
afterAll(() => {
  slapd.kill();
  return world.end();
});

test("a directory is tried before it is enabled, and people log in with their accounts there", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  await visitor.signIn();
  await page.getByRole("link", { name: "Identity providers" }).click();
  const line = page.getByRole("listitem").filter({ hasText: "OpenLDAP" });
  await line.getByText("Off").waitFor();
  // What nobody has tried with the real service says so.
  const other = page.getByRole("listitem").filter({ hasText: "FreeIPA" });
  await other.getByText("not tried with the real service").waitFor();
  expect(await line.getByText("not tried").count()).toBe(0);

  await page.getByRole("button", { name: "Set up OpenLDAP…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Servers").fill("127.0.0.1");
  await dialog.getByLabel("Port").fill(String(slapd.port));
  await dialog.getByLabel("Service account distinguished name").fill(slapd.reader);
  await dialog.getByLabel("Service account password").fill("a wrong one");
  await dialog.getByLabel("User search base").fill(slapd.people);
  await dialog.getByLabel("Group search base").fill(slapd.groups);
  await dialog.getByLabel("User name there").fill("ada");
  await dialog.getByLabel("Password there").fill(slapd.adaPassword);
  await dialog.getByRole("button", { name: "Test", exact: true }).click();
  await dialog.getByText("It does not work so far, and nothing was changed.").waitFor();
  visitor.complaints.length = 0;

  await dialog.getByLabel("Service account password").fill(slapd.readerPassword);
  await dialog.getByRole("button", { name: "Test", exact: true }).click();
  await dialog.getByText(`openldap_user://uid=ada,${slapd.people}`).waitFor();
  await dialog.getByText(`openldap_group://cn=team,${slapd.groups}`).waitFor();
  await visitor.expectAccessible("setting up a directory");
  await dialog.getByRole("button", { name: "Test and enable" }).click();
  await line.getByText("Enabled").waitFor();
  expect(await page.content()).not.toContain(slapd.readerPassword);

  // The account of who enabled it is another login of theirs; others become users of their own.
  const ada = await world.visitor();
  await ada.signIn("", "ada", slapd.adaPassword);
  await ada.page.getByRole("button", { name: "You: Default Admin" }).waitFor();
  const bob = await world.visitor();
  await bob.signIn("", "bob", slapd.bobPassword);
  await bob.page.getByRole("button", { name: "You: Bob Example" }).waitFor();

  // A group there gets a global role, and loses it.
  await page.goto("/users/groups");
  await page.getByText("No group has a global role").waitFor();
  await page.getByRole("button", { name: "Give role to group" }).click();
  await dialog.getByLabel("Group").fill("team");
  await dialog.getByRole("radiogroup", { name: "Found" }).getByRole("radio").check();
  await dialog.getByLabel("Role").selectOption({ label: "Manage Users" });
  await visitor.expectAccessible("a role for a group");
  await dialog.getByRole("button", { name: "Give role" }).click();
  const group = page.getByRole("list", { name: "Groups" }).getByRole("listitem");
  await group.getByText("Manage Users").waitFor();
  await page.getByRole("button", { name: "Read memberships anew" }).click();
  await page.getByText("Groups are read anew at the identity providers").waitFor();
  await group.getByRole("button", { name: /^Take the role Manage Users/ }).click();
  await page.getByText("No group has a global role").waitFor();
  await page.goto("/providers");

  await page.getByRole("button", { name: "Disable OpenLDAP…" }).click();
  await dialog.getByRole("button", { name: "Disable", exact: true }).click();
  visitor.expectQuiet();
  // The browser in which it was enabled is logged in through it, too.
  await page.getByRole("heading", { name: "Sign in", level: 1 }).waitFor();
  visitor.complaints.length = 0;
  await visitor.signIn();
  await page.goto("/providers");
  await line.getByText("Off").waitFor();
  for (const user of [ada, bob]) {
    await user.page.reload();
    await user.page.getByRole("heading", { name: "Sign in", level: 1 }).waitFor();
    await user.leave();
  }
  await visitor.leave();
});
