import { expect, test } from "vitest";
import type { ClusterDriver } from "../../api/drivers.ts";
import { byName, changedFields, driverName, driverTone, driverWord, hostsOf } from "./model.ts";

const driver = (fields: Partial<ClusterDriver>): ClusterDriver => ({
  id: "kd-1",
  type: "kontainerDriver",
  ...fields,
});

test("a state has a word and a tone", () => {
  for (const [state, transitioning, tone, word] of [
    ["active", "no", "ok", "Active"],
    ["inactive", "no", "off", "Inactive"],
    ["downloading", "yes", "run", "Downloading"],
    ["downloading", "error", "err", "Downloading"],
    ["removing", "yes", "rem", "Removing"],
  ] as const) {
    const shown = driver({ state, transitioning });
    expect([driverTone(shown), driverWord(shown)]).toEqual([tone, word]);
  }
});

test("drivers are in the order of their names, or ids before they have one", () => {
  const drivers = [driver({ name: "oke" }), driver({ id: "kd-2" }), driver({ name: "aks" })];
  expect(byName(drivers).map(driverName)).toEqual(["aks", "kd-2", "oke"]);
});

test("hosts stand one beside the other or below", () => {
  expect(hostsOf(" *.oraclecloud.com,\napi.example  b.example ")).toEqual([
    "*.oraclecloud.com",
    "api.example",
    "b.example",
  ]);
});

test("what a form left as it was is not sent", () => {
  const fields = { url: "https://a/1", name: "go", checksum: "", uiUrl: "", whitelistDomains: [] };
  const stored = driver({ ...fields, checksum: null });
  expect(changedFields(stored, fields)).toEqual({});
  const other = { ...fields, url: "https://a/2", whitelistDomains: ["b.example"] };
  expect(changedFields(stored, other)).toEqual({
    url: "https://a/2",
    whitelistDomains: ["b.example"],
  });
});
