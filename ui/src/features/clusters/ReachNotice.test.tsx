// @vitest-environment jsdom
import { HeadlessMantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { ReachNotice } from "./ReachNotice.tsx";

afterEach(cleanup);

function show(serverUrl: string) {
  const client = new QueryClient();
  client.setQueryData(["setting", "server-url"], serverUrl);
  return render(
    <QueryClientProvider client={client}>
      <ReachNotice />
    </QueryClientProvider>,
    { wrapper: HeadlessMantineProvider },
  );
}

test("an address that leads each machine to itself is warned of, with the command that helps", () => {
  show("https://localhost:8443");
  screen.getByText("Agents on other machines cannot reach https://localhost:8443.");
  screen.getByText(
    (_, element) =>
      element?.tagName === "CODE" &&
      element.textContent === "drover settings set server-url https://NAME:8443",
  );
  screen.getByRole("button", { name: "Copy the command that changes server-url" });
});

test.each(["https://drover.example.com", ""])("nothing is said of '%s'", (serverUrl) => {
  expect(show(serverUrl).container.textContent).toBe("");
});
