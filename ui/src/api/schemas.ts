/** What the server says of a type of `/v3`: its fields, from which forms are made. */

import { queryOptions } from "@tanstack/react-query";
import { request } from "./client.ts";

export interface SchemaField {
  /** Such as `string`, `password`, `int`, `boolean`, `enum`, `array[string]`. */
  type: string;
  /** What it is, where somebody said so: drivers do. */
  description?: string | null;
  default?: unknown;
  options?: string[] | null;
  required?: boolean;
  create?: boolean;
  update?: boolean;
  min?: number | null;
  max?: number | null;
}

export interface TypeSchema {
  id: string;
  resourceFields: Record<string, SchemaField>;
}

export function readSchema(type: string): Promise<TypeSchema> {
  return request("GET", `/v3/schemas/${encodeURIComponent(type)}`);
}

export function schemaQuery(type: string) {
  return queryOptions({
    queryKey: ["schema", type],
    queryFn: () => readSchema(type),
    staleTime: 300_000,
  });
}
