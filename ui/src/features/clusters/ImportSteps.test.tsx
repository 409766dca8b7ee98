// @vitest-environment jsdom
import { HeadlessMantineProvider } from "@mantine/core";
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { checklist } from "./checklist.ts";
import { but, condition, NOW, waiting } from "./examples.ts";
import { ImportSteps } from "./ImportSteps.tsx";

afterEach(cleanup);

test("a problem shows the reason and what helps, and the command can be copied", () => {
  const down = but(
    waiting(),
    condition("Pending", "True"),
    condition("Connected", "False", "Disconnected", "cluster agent is not connected"),
  );
  render(<ImportSteps steps={checklist(down, undefined, NOW)} />, {
    wrapper: HeadlessMantineProvider,
  });
  expect(screen.getByText("Why:").parentElement?.textContent).toContain("agent is not connected");
  const command = "kubectl -n cattle-system logs deploy/cattle-cluster-agent";
  const isCommand = (_: string, element: Element | null) =>
    element?.tagName === "CODE" && element.textContent === command;
  expect(screen.getByText(isCommand)).toBeTruthy();
  expect(screen.getByRole("button", { name: "Copy the command that helps" })).toBeTruthy();
  // The state of each step is in words too, for those who see no shapes.
  expect(screen.getAllByRole("listitem").map((item) => item.textContent)).toEqual([
    expect.stringContaining(", done"),
    expect.stringContaining(", done"),
    expect.stringContaining(", needs you"),
    expect.stringContaining(", to come"),
    expect.stringContaining(", to come"),
    expect.stringContaining(", to come"),
  ]);
});
