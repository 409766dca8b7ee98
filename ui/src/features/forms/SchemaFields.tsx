/**
 * The fields of a form that a schema describes: those that most people set, then needed ones; the
 * others behind a summary.
 */

import { Check } from "../../ui/Check.tsx";
import { Field } from "../../ui/Field.tsx";
import { Select } from "../../ui/Select.tsx";
import { TextArea } from "../../ui/TextArea.tsx";
import styles from "./Forms.module.css";
import { type FormField, isNeeded, valueText } from "./fields.ts";

/** Of fields with several lines. */
const LINES = 4;
/** Of lists, whose values are one per line: some have commas. */
const LIST_LINES = 2;

interface SchemaFieldsProps {
  fields: readonly FormField[];
  /** What is stored, if something is. */
  stored?: Record<string, unknown>;
  /** Fields with several lines. */
  long?: readonly string[];
  /** Fields that most people set, in order. */
  first?: readonly string[];
  /** Show what the schema says of a field below it. */
  described?: boolean;
}

export function SchemaFields({
  fields,
  stored = {},
  long = [],
  first = [],
  described = false,
}: SchemaFieldsProps) {
  const place = ({ name }: FormField) =>
    first.includes(name) ? first.indexOf(name) : first.length;
  const isFirst = (field: FormField) => isNeeded(field) || first.includes(field.name);
  const before = fields.filter(isFirst).sort((one, other) => place(one) - place(other));
  const shown = (field: FormField) => (
    <OneField
      key={field.name}
      field={field}
      stored={stored[field.name]}
      isLong={long.includes(field.name)}
      help={described ? (field.description ?? undefined) : undefined}
    />
  );
  const others = fields.filter((field) => !isFirst(field));
  return (
    <>
      {before.map(shown)}
      {others.length > 0 && (
        <details className={styles.more}>
          <summary>More settings, which have defaults</summary>
          <div className={styles.fields}>{others.map(shown)}</div>
        </details>
      )}
    </>
  );
}

interface OneFieldProps {
  field: FormField;
  stored: unknown;
  isLong: boolean;
  help: string | undefined;
}

function OneField({ field, stored, isLong, help }: OneFieldProps) {
  const { name, label, type, options, min, max } = field;
  const text = valueText(field, stored);
  if (type === "boolean") {
    return (
      <Check name={name} defaultChecked={text === "true"}>
        {label}
        {help && <span className="second small"> {help}</span>}
      </Check>
    );
  }
  if (type === "array[string]") {
    return (
      <TextArea
        label={label}
        name={name}
        defaultValue={text}
        rows={LIST_LINES}
        required={isNeeded(field)}
        help={help ? `${help}. One per line.` : "One per line."}
      />
    );
  }
  if (isLong) return <TextArea label={label} name={name} defaultValue={text} rows={LINES} />;
  if (type === "enum") {
    return (
      <Select label={label} name={name} defaultValue={text}>
        {(options ?? []).map((option) => (
          <option key={option}>{option}</option>
        ))}
      </Select>
    );
  }
  return (
    <Field
      label={label}
      name={name}
      type={type === "password" ? "password" : type === "int" ? "number" : "text"}
      defaultValue={text}
      required={isNeeded(field)}
      autoComplete={type === "password" ? "new-password" : "off"}
      spellCheck={false}
      {...(help && { help })}
      {...(type === "int" && { min: min ?? undefined, max: max ?? undefined })}
    />
  );
}
