import { expect, test } from "vitest";
import { isOwnMachine, portOf } from "./addresses.ts";

test.each([
  "https://localhost:8443",
  "https://LOCALHOST",
  "https://localhost./",
  "https://drover.localhost:8443",
  "https://127.0.0.1:8443",
  "https://127.8.9.10",
  "https://[::1]:8443",
  "https://0.0.0.0:8443",
])("%s leads each machine to itself", (url) => {
  expect(isOwnMachine(url)).toBe(true);
});

test.each([
  "https://drover.example.com",
  "https://localhost.example.com",
  "https://10.0.0.1:8443",
  "https://[2001:db8::1]:8443",
  "no URL",
  "",
])("'%s' may lead others to the server", (url) => {
  expect(isOwnMachine(url)).toBe(false);
});

test("the port of a URL is returned unchanged", () => {
  expect(portOf("https://localhost:8443")).toBe(":8443");
  expect(portOf("https://localhost")).toBe("");
  expect(portOf("no URL")).toBe("");
});
