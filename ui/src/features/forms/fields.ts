/** Forms from schemas: which fields there are, and the values of a form. Pure. */

import type { SchemaField, TypeSchema } from "../../api/schemas.ts";

/** Fields that every resource has, which are no settings of it. */
const COMMON = new Set([
  ...["annotations", "created", "creatorId", "id", "labels", "name", "removed", "type", "uuid"],
]);
/** Types of fields that a form has. */
const SHOWN = /^(string|password|int|boolean|enum|array\[string\])$/;

export interface FormField extends SchemaField {
  name: string;
  /** The name in words, such as `User search base`. */
  label: string;
}

/** The fields that a form has, in the order of their names; `left`: names that it leaves out. */
export function formFields(
  { resourceFields }: TypeSchema,
  left: readonly string[] = [],
): FormField[] {
  return Object.entries(resourceFields)
    .filter(([name, field]) => {
      const isOwn = !COMMON.has(name) && !left.includes(name);
      return isOwn && (field.create || field.update) && SHOWN.test(field.type);
    })
    .map(([name, field]) => ({ ...field, name, label: labelOf(name) }))
    .sort((one, other) => one.label.localeCompare(other.label));
}

/** Written in capitals, though names of fields do not. */
const ABBREVIATIONS = new Set(["ca", "cpu", "dn", "id", "ip", "tls", "url"]);

/** `userSearchBase` becomes `User search base`; abbreviations stay. */
export function labelOf(name: string): string {
  const words = name
    .replace(/([a-z\d])([A-Z])/g, "$1 $2")
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2")
    .split(" ")
    .map((word) => {
      const isShort = /^[A-Z\d]{2,}$/.test(word) || ABBREVIATIONS.has(word.toLowerCase());
      return isShort ? word.toUpperCase() : word.toLowerCase();
    });
  const text = words.join(" ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Whether the user has to say something: it is required, and has no default. */
export function isNeeded({ required, default: given, type }: SchemaField): boolean {
  return !!required && !given && type !== "boolean";
}

/** The text of a value in a form; secrets are never filled in. */
export function valueText(field: FormField, stored: unknown): string {
  if (field.type === "password") return "";
  const value = stored ?? field.default ?? "";
  return Array.isArray(value) ? value.join("\n") : String(value);
}

/** The values of a form. Empty texts are left out, so that the server's defaults hold. */
export function formValues(fields: readonly FormField[], data: FormData): Record<string, unknown> {
  const values = fields.flatMap((field): [string, unknown][] => {
    const { name, type } = field;
    if (type === "boolean") return [[name, data.has(name)]];
    const raw = String(data.get(name) ?? "");
    // Blanks may be part of a secret.
    const text = type === "password" ? raw : raw.trim();
    if (!text) return [];
    if (type === "int") return [[name, Number(text)]];
    if (type !== "array[string]") return [[name, text]];
    return [
      [
        name,
        text
          .split("\n")
          .map((line) => line.trim())
          .filter(Boolean),
      ],
    ];
  });
  return Object.fromEntries(values);
}
