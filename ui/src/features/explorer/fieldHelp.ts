/** Which field the cursor is in, and what its schema says. Pure. */

import type { JsonSchema, OpenApiDocument } from "../../api/openapi.ts";

/** The keys that lead to the line of an offset in a YAML text; places in lists have none. */
export function pathAt(text: string, offset: number): string[] {
  const before = text.slice(0, offset).split("\n");
  const rest = text.slice(offset).split("\n")[0] ?? "";
  const lines = [...before.slice(0, -1), (before.at(-1) ?? "") + rest];
  const path: string[] = [];
  let inside = Number.POSITIVE_INFINITY;
  for (const [distance, line] of lines.toReversed().entries()) {
    const parsed = keysOf(line);
    if (distance === 0 && parsed.length === 0) {
      // A line without a key belongs to what it is indented below.
      inside = line.search(/\S|$/);
      // Nothing typed yet: the level of the cursor.
      if (line.trim() === "") inside = line.length;
    }
    for (const { key, indent } of parsed.toReversed()) {
      if (indent < inside) {
        path.unshift(key);
        inside = indent;
      }
    }
    if (inside === 0) break;
  }
  return path;
}

/** The keys of a line with their columns: `- name: x` has one, after the dash. */
function keysOf(line: string): { key: string; indent: number }[] {
  const match = /^(\s*(?:- +)*)("[^"]*"|'[^']*'|[^\s#:'"[{-][^:]*):(?:\s|$)/.exec(line);
  if (!match) return [];
  const [, lead = "", key = ""] = match;
  return [{ key: key.replace(/^["']|["']$/g, ""), indent: lead.length }];
}

export interface FieldHelp {
  /** Such as `array of string`. */
  type: string;
  description: string;
  options: string[];
  fields: { name: string; type: string; isRequired: boolean }[];
}

/** The schema of a kind. */
export function schemaOfKind(
  document: OpenApiDocument,
  { group, version, kind }: { group: string; version: string; kind: string },
): JsonSchema | undefined {
  return Object.values(document.components?.schemas ?? {}).find((schema) =>
    schema["x-kubernetes-group-version-kind"]?.some(
      (one) => one.group === group && one.version === version && one.kind === kind,
    ),
  );
}

/**
 * What is known of the field at a path below a schema, and how much of the path is known: a key that
 * is being typed is none yet.
 */
export function helpAt(
  document: OpenApiDocument,
  root: JsonSchema,
  path: readonly string[],
): { help: FieldHelp; known: string[] } {
  let current = resolved(document, root);
  const known: string[] = [];
  for (const key of path) {
    const holder = element(document, current);
    const next = holder.properties?.[key] ?? mapped(holder);
    if (!next) break;
    current = resolved(document, next);
    known.push(key);
  }
  const holder = element(document, current);
  const required = new Set(holder.required);
  const fields = Object.entries(holder.properties ?? {})
    .map(([name, schema]) => ({
      name,
      type: typeText(document, resolved(document, schema)),
      isRequired: required.has(name),
    }))
    .sort((one, other) => one.name.localeCompare(other.name));
  return {
    help: {
      type: typeText(document, current),
      description: current.description ?? "",
      options: (current.enum ?? []).map(String),
      fields,
    },
    known,
  };
}

/** Follows references, which have their own descriptions besides. */
function resolved({ components }: OpenApiDocument, schema: JsonSchema): JsonSchema {
  const [only] = schema.allOf ?? [];
  const reference = schema.$ref ?? (schema.allOf?.length === 1 ? only?.$ref : undefined);
  const target = reference && components?.schemas?.[reference.split("/").at(-1) ?? ""];
  if (!target) return schema;
  return { ...target, ...(schema.description && { description: schema.description }) };
}

/** What one element of a list is, else the schema itself. */
function element(document: OpenApiDocument, schema: JsonSchema): JsonSchema {
  return schema.items ? resolved(document, schema.items) : schema;
}

function mapped({ additionalProperties }: JsonSchema): JsonSchema | undefined {
  return typeof additionalProperties === "object" ? additionalProperties : undefined;
}

function typeText(document: OpenApiDocument, schema: JsonSchema): string {
  if (schema.items) return `list of ${typeText(document, resolved(document, schema.items))}`;
  const map = mapped(schema);
  if (map) return `map of ${typeText(document, resolved(document, map))}`;
  if (schema["x-kubernetes-int-or-string"] || schema.format === "int-or-string") {
    return "number or string";
  }
  return schema.type ?? (schema.properties ? "object" : "anything");
}
