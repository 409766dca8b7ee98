import { expect, test } from "vitest";
import { helpAt, pathAt, schemaOfKind } from "./fieldHelp.ts";

const YAML = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    spec:
      containers:
        - name: main
          image: web:1
          env:
          - name: "A: B"
            value: x
      
`;

const pathOf = (needle: string) => pathAt(YAML, YAML.indexOf(needle) + needle.length);

test("the cursor is in a field, whatever lists are around it", () => {
  expect(pathOf("kind: Dep")).toEqual(["kind"]);
  expect(pathOf("name: web")).toEqual(["metadata", "name"]);
  expect(pathOf("image: web:1")).toEqual(["spec", "template", "spec", "containers", "image"]);
  expect(pathOf("- name: main")).toEqual(["spec", "template", "spec", "containers", "name"]);
  const env = ["spec", "template", "spec", "containers", "env"];
  expect(pathOf("value: x")).toEqual([...env, "value"]);
  expect(pathOf("value: x\n      ")).toEqual(["spec", "template", "spec"]);
  expect(pathAt("", 0)).toEqual([]);
  expect(pathAt("spec:\n  repl", 12)).toEqual(["spec"]);
});

const document = {
  components: {
    schemas: {
      Web: {
        "x-kubernetes-group-version-kind": [{ group: "x", version: "v1", kind: "Web" }],
        properties: {
          spec: { allOf: [{ $ref: "#/components/schemas/Spec" }], description: "own" },
        },
      },
      Spec: {
        type: "object",
        required: ["parts"],
        properties: {
          parts: { type: "array", items: { $ref: "#/components/schemas/Part" } },
          labels: { type: "object", additionalProperties: { type: "string" } },
          size: { type: "string", enum: ["S", "L"] },
        },
      },
      Part: { type: "object", description: "One part.", properties: { port: { type: "integer" } } },
    },
  },
};

test("help follows references, lists and maps, and stays where it knows nothing", () => {
  const kind = { group: "x", version: "v1", kind: "Web" };
  const root = schemaOfKind(document, kind);
  expect(schemaOfKind(document, { ...kind, kind: "Other" })).toBeUndefined();
  const at = (...path: string[]) => helpAt(document, root ?? {}, path);
  const spec = at("spec").help;
  expect(spec.description).toBe("own");
  expect(spec.fields).toEqual([
    { name: "labels", type: "map of string", isRequired: false },
    { name: "parts", type: "list of object", isRequired: true },
    { name: "size", type: "string", isRequired: false },
  ]);
  expect(at("spec", "parts").help.fields.map(({ name }) => name)).toEqual(["port"]);
  expect(at("spec", "parts", "port").help.type).toBe("integer");
  expect(at("spec", "labels", "any").help.type).toBe("string");
  expect(at("spec", "size").help.options).toEqual(["S", "L"]);
  expect(at("spec", "siz").known).toEqual(["spec"]);
});
