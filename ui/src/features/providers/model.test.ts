import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { kindOf, offered } from "./model.ts";

const config = (id: string, enabled = false) => ({ id, type: `${id}Config`, enabled });

test("providers that cannot be enabled are left out, enabled ones come first", () => {
  const configs = [
    config("adfs"),
    config("github"),
    config("openldap", true),
    config("local", true),
  ];
  expect(offered(configs).map(({ id }) => id)).toEqual(["openldap", "github"]);
});

test("what was tried is what the table of the documentation says", () => {
  const page = readFileSync("../docs/compat/identity-providers.md", "utf8");
  const rows = [...page.matchAll(/^\|[^|]*\| `(\w+)` \|.*\| (yes|no)[^|]*\|$/gm)];
  expect(rows.length).toBe(8);
  for (const [, id = "", tried] of rows) {
    expect(kindOf(config(id))?.isTried, id).toBe(tried === "yes");
  }
});
