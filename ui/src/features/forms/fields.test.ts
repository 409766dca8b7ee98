import { expect, test } from "vitest";
import { formFields, formValues, isNeeded, labelOf, valueText } from "./fields.ts";

const schema = {
  id: "directory",
  resourceFields: {
    port: { type: "int", default: 389, required: true, create: true },
    servers: { type: "array[string]", required: true, create: true },
    secret: { type: "password", required: true, create: true },
    tls: { type: "boolean", required: true, create: true },
    mode: { type: "enum", options: ["a", "b"], update: true },
    labels: { type: "map[string]", create: true },
    uuid: { type: "string" },
    owner: { type: "reference[user]", create: true },
  },
};

test("a form has the fields that users set", () => {
  const fields = formFields(schema, ["mode"]);
  expect(fields.map(({ name }) => name)).toEqual(["port", "secret", "servers", "tls"]);
  expect(fields.filter(isNeeded).map(({ name }) => name)).toEqual(["secret", "servers"]);
});

test("names become words", () => {
  expect(labelOf("userSearchBase")).toBe("User search base");
  expect(labelOf("groupDNAttribute")).toBe("Group DN attribute");
  expect(labelOf("tls")).toBe("TLS");
});

test("values are of the types of their fields, and empty ones are left out", () => {
  const data = new FormData();
  data.set("port", "636");
  data.set("servers", "a.example\n  b.example,c \n\n");
  data.set("secret", " blanks stay ");
  data.set("mode", "");
  const fields = formFields(schema);
  expect(formValues(fields, data)).toEqual({
    port: 636,
    servers: ["a.example", "b.example,c"],
    secret: " blanks stay ",
    tls: false,
  });
});

test("a form shows what is stored, else the default, and no secrets", () => {
  const shown = (name: string, stored: unknown) => {
    const field = formFields(schema).find((one) => one.name === name);
    return field && valueText(field, stored);
  };
  expect(shown("port", undefined)).toBe("389");
  expect(shown("servers", ["a", "b"])).toBe("a\nb");
  expect(shown("secret", "known")).toBe("");
});
