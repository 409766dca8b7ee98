/** The flows of the first hour without a mouse, in a simulated cluster. */

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
      if (!element?.matches("a, button, input, textarea, select")) return "";
      const label = element.getAttribute("aria-label");
      const labels = (element as HTMLInputElement).labels;
      const field = labels?.[0]?.textContent;
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

/** Opens the palette and goes to the entry that a text finds. */
async function jumpTo({ page }: Visitor, text: string, entry: string | RegExp): Promise<void> {
  await page.keyboard.press("Control+k");
  await page.keyboard.type(text);
  await page.getByRole("dialog").getByRole("option").first().filter({ hasText: entry }).waitFor();
  await page.keyboard.press("Enter");
}

test("workloads, logs, shells, YAML, projects and members need no mouse", async () => {
  const visitor = await world.visitor();
  const { page } = visitor;
  const keys = page.keyboard;
  await visitor.signIn();
  await visitor.makeUser({ username: "mia", password: PASSWORD });
  await world.run(await visitor.importCommand("board"));
  await visitor.row("board").getByText("Active").waitFor();
  await world.run("kubectl create deployment web --image=web:1 --replicas=2");
  await world.run("kubectl create configmap words --from-literal=a=b");
  await world.run("kubectl rollout status deployment web --timeout=60s");
  await world.run("kubectl set image deployment/web web=web:2");

  await jumpTo(visitor, "board", /board/);
  await page.getByRole("heading", { name: "board", level: 1 }).waitFor();
  await jumpTo(visitor, "deployments of", /Deployments of board/);
  await page.getByRole("link", { name: "web", exact: true }).waitFor();
  await tabTo(visitor, "web");
  await keys.press("Enter");
  await page.getByRole("table", { name: "Pods" }).getByRole("link").first().waitFor();
  await tabTo(visitor, "Revisions");
  await keys.press("Enter");
  await page.getByRole("button", { name: "Roll back to 1…" }).waitFor();
  await tabTo(visitor, "Roll back to 1…");
  await keys.press("Enter");
  await page.getByRole("region", { name: "What would change" }).waitFor();
  await tabTo(visitor, "Roll back");
  await keys.press("Enter");
  await page.getByText("Rolling web back to revision 1").waitFor();

  await tabTo(visitor, "Pods");
  await keys.press("Enter");
  await world.run("kubectl rollout status deployment web --timeout=60s");
  const pods = page.getByRole("table", { name: "Pods" }).getByRole("link");
  // Those of the other revision leave the list after a moment.
  const running = await world.run(
    "kubectl get pods -l app=web --field-selector=status.phase=Running -o jsonpath='{.items[*].metadata.name}'",
  );
  await expect
    .poll(async () => (await pods.allInnerTexts()).sort(), { timeout: 20_000 })
    .toEqual(running.trim().split(" ").sort());
  await tabTo(visitor, /^web-/);
  await keys.press("Enter");
  await page.getByRole("table", { name: "Containers" }).waitFor();
  await keys.press("l");
  await page.getByRole("log").waitFor();
  await keys.press("s");
  const shell = page.getByRole("region", { name: "Shell" });
  await shell.getByText("Connected").waitFor();
  await keys.press("Control+Shift+Escape");
  await page.waitForFunction(() => !document.activeElement?.closest(".xterm"));

  await jumpTo(visitor, "words", /default\/words/);
  await page.getByRole("heading", { name: "words", level: 1 }).waitFor();
  await tabTo(visitor, "Edit");
  await keys.press("Enter");
  await tabTo(visitor, "YAML of default/words");
  await keys.press("Control+End");
  await keys.insertText("  labels: {by: keys}\n");
  await tabTo(visitor, "Review changes");
  await keys.press("Enter");
  await page.getByRole("region", { name: "What would change" }).waitFor();
  await tabTo(visitor, "Save");
  await keys.press("Enter");
  await page.getByText("Saved default/words").waitFor();
  expect(await world.run("kubectl get configmap words -o jsonpath={.metadata.labels.by}")).toBe(
    "keys",
  );

  await jumpTo(visitor, "projects of", /Projects of board/);
  await page.getByRole("link", { name: "Default", exact: true }).waitFor();
  await tabTo(visitor, "Create project");
  await keys.press("Enter");
  await page.getByRole("dialog").waitFor();
  await keys.type("keyed");
  await keys.press("Enter");
  await page.getByRole("heading", { name: "keyed", level: 1 }).waitFor();
  await tabTo(visitor, "Create namespace");
  await keys.press("Enter");
  await page.getByRole("dialog").waitFor();
  await keys.type("keyed-a");
  await keys.press("Enter");
  await page.getByRole("link", { name: "keyed-a" }).waitFor();
  await tabTo(visitor, "Add member");
  await keys.press("Enter");
  await page.getByRole("dialog").waitFor();
  await keys.type("mia");
  await page.getByRole("radiogroup", { name: "Found" }).getByRole("radio").waitFor();
  await keys.press("Tab");
  await keys.press("Space");
  await page
    .getByRole("region", { name: "What this does" })
    .getByText(/mia gains/)
    .waitFor();
  await tabTo(visitor, "Give role");
  await keys.press("Enter");
  await page.getByRole("button", { name: /^Take the role .* from mia…$/ }).waitFor();

  await keys.press("Control+`");
  await page.locator("[data-shown=true] .xterm-rows").getByText("is simulated").waitFor();
  await keys.press("Control+Shift+Escape");
  await tabTo(visitor, "End the shell in board");
  await keys.press("Enter");
  await page.locator("[data-shown=true] .xterm-rows").waitFor({ state: "detached" });
  visitor.expectQuiet();
  await visitor.leave();
});

function focusedName(visitor: Visitor): Promise<string | null | undefined> {
  return visitor.page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
}
