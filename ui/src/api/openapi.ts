/** What a cluster says of the fields of its kinds: OpenAPI 3, one document per API group. */

import { queryOptions } from "@tanstack/react-query";
import { clusterPath, request } from "./client.ts";

/** As much of a JSON schema as fields need. */
export interface JsonSchema {
  $ref?: string;
  allOf?: JsonSchema[];
  type?: string;
  format?: string;
  description?: string;
  enum?: unknown[];
  default?: unknown;
  required?: string[];
  properties?: Record<string, JsonSchema>;
  items?: JsonSchema;
  additionalProperties?: JsonSchema | boolean;
  "x-kubernetes-group-version-kind"?: { group: string; version: string; kind: string }[];
  "x-kubernetes-int-or-string"?: boolean;
}

export interface OpenApiDocument {
  components?: { schemas?: Record<string, JsonSchema> };
}

export function openApiQuery(clusterId: string, group: string, version: string) {
  const api = group ? `apis/${group}/${version}` : `api/${version}`;
  return queryOptions({
    queryKey: ["openapi", clusterId, group, version],
    queryFn: () => request<OpenApiDocument>("GET", `${clusterPath(clusterId)}/openapi/v3/${api}`),
    staleTime: 300_000,
    // A document has up to 2 MB.
    gcTime: 60_000,
    retry: false,
  });
}
