/** The first hour without a mouse. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "./programs.ts";
import { PASSWORD, type Visitor, World } from "./world.ts";

const world = new World(["--nodes", "2"]);

beforeAll(() => world.start());
afterAll(() => world.end());

/** Presses Tab until the element of this name has the focus; fails if it never does. */
async function tabTo(visitor: Visitor, name: string | RegExp): Promise<void> {
  const { page } = visitor;
  const seen: string[] = [];
  for (let step = 0; step < 60; step += 1) {
    await page.keyboard.press("Tab");
    const focused = await page.evaluate(() => {
      const element = document.activeElement;
      if (!element?.matches("a, button, input")) return "";
      const label = element.getAttribute("aria-label");
      const field = element instanceof HTMLInputElement ? element.labels?.[0]?.textContent : "";
      return (label || field || element.textContent || "").trim();
    });
    seen.push(focused);
    if (typeof name === "string" ? focused === name : name.test(focused)) return;
  }
  throw new Error(`the focus never came to ${name}; it was at ${seen.join(", ")}`);
}

/** Goes down a menu to an entry once the menu has the focus; fails if it does not exist. */
async function arrowTo(visitor: Visitor, entry: string): Promise<void> {
  const { page } = visitor;
  await page.waitForFunction(() => document.activeElement?.closest("[role=menu]"));
  const seen: (string | undefined)[] = [];
  for (let step = 0; step < 12; step += 1) {
    await page.keyboard.press("ArrowDown");
    seen.push(await page.evaluate(() => document.activeElement?.textContent?.trim()));
    if (seen.at(-1) === entry) return;
  }
  throw new Error(`no menu entry ${entry}; the focus was at ${seen.join(", ")}`);
}

/** Whether the focus is visible. */
async function focusIsVisible(visitor: Visitor): Promise<boolean> {
  return visitor.page.evaluate(() => {
    const element = document.activeElement;
    const holders = [element, element?.parentElement];
    return holders.some((one) => one && getComputedStyle(one).outlineStyle !== "none");
  });
}

test("signing in, importing, inspecting and removing need no mouse", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  const keys = page.keyboard;
  await page.goto("/");
  await page.getByLabel("User name").waitFor();
  // The focus starts in the first text field.
  await keys.type("admin");
  await tabTo(visitor, "Password");
  expect(await focusIsVisible(visitor)).toBe(true);
  await keys.type(PASSWORD);
  await keys.press("Enter");
  await page.getByRole("heading", { name: "Clusters", level: 1 }).waitFor();

  await tabTo(visitor, "Import cluster");
  expect(await focusIsVisible(visitor)).toBe(true);
  await keys.press("Enter");
  await page.getByRole("dialog").waitFor();
  await keys.type("Key Board");
  await keys.press("Enter");
  await page.getByText("Only a–z, 0–9 and “-”").waitFor();
  await tabTo(visitor, "Use key-board");
  await keys.press("Enter");
  await tabTo(visitor, "Get the command");
  await keys.press("Enter");
  await page.getByText("Watch it arrive").waitFor();
  // The focus moves to the command by itself.
  await eventually("the focus is on Copy", async () => {
    expect(await focusedName(visitor)).toBe("Copy the import command");
  });
  expect(await focusIsVisible(visitor)).toBe(true);
  await keys.press("Enter");
  await page.getByRole("button", { name: "Copied" }).waitFor();
  await world.run(await page.evaluate(() => navigator.clipboard.readText()));
  await page.getByRole("dialog").getByText("key-board is Active").waitFor();
  await keys.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });

  // Single keys: filter, go.
  await keys.press("/");
  await keys.type("key");
  await visitor.row("local").waitFor({ state: "detached" });
  await keys.press("Escape");
  await visitor.row("local").waitFor();
  await tabTo(visitor, "key-board");
  await keys.press("Enter");
  await page.getByRole("heading", { name: "key-board", level: 1 }).waitFor();
  await keys.press("g");
  await keys.press("n");
  await page.getByRole("cell", { name: "node-1", exact: true }).waitFor();
  await keys.press("?");
  await page.getByRole("dialog", { name: "Keyboard map" }).waitFor();
  await keys.press("Escape");

  await tabTo(visitor, "More actions for key-board");
  await keys.press("Enter");
  await arrowTo(visitor, "Remove…");
  await keys.press("Enter");
  await page.getByRole("dialog", { name: /Remove key-board/ }).waitFor();
  // An accidental Enter does nothing: the focus is on Cancel.
  await keys.press("Enter");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await focusedName(visitor)).toBe("More actions for key-board");
  await keys.press("Enter");
  await arrowTo(visitor, "Remove…");
  await keys.press("Enter");
  await tabTo(visitor, /^Type key-board$/);
  await keys.type("key-board");
  await keys.press("Enter");
  await page.getByRole("heading", { name: "Clusters", level: 1 }).waitFor();
  await visitor.row("key-board").waitFor({ state: "detached" });

  await tabTo(visitor, /You: /);
  await keys.press("Enter");
  await arrowTo(visitor, "Dark");
  await keys.press("Enter");
  expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("dark");
  visitor.expectQuiet();
  await visitor.leave();
});

function focusedName(visitor: Visitor): Promise<string | null | undefined> {
  return visitor.page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
}
