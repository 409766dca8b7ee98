/** Why the signed-in user may not do something with clusters, shown before they try. */

import { useQuery } from "@tanstack/react-query";
import { grantorsQuery, mayQuery } from "../../api/access.ts";
import type { Cluster, Node } from "../../api/types.ts";

/** Why the user may not import clusters; nothing if they may, or while it is not known. */
export function useImportDenial(): string | undefined {
  const may = useQuery(mayQuery("create", "clusters"));
  const denied = may.data === false;
  const grantors = useQuery({ ...grantorsQuery(), enabled: denied });
  return denied ? importDenial(grantors.data ?? []) : undefined;
}

/** Why the user may not remove a cluster; nothing if they may, or while it is not known. */
export function useRemovalDenial(cluster: Cluster): string | undefined {
  const may = useQuery({
    ...mayQuery("delete", "clusters", { name: cluster.id }),
    enabled: !cluster.internal,
  });
  // The server omits links of forbidden operations.
  const denied = may.data === false || (!!cluster.links && !cluster.links.remove);
  const grantors = useQuery({ ...grantorsQuery(cluster.id), enabled: denied && !cluster.internal });
  return denied ? removalDenial(cluster.name, grantors.data ?? []) : undefined;
}

/**
 * Why the user may not change nodes of a cluster; nothing if they may change all that are shown.
 */
export function useNodeDenial(cluster: Cluster, nodes: readonly Node[]): string | undefined {
  const denied = nodes.some(({ links }) => !links?.update || !links.remove);
  const grantors = useQuery({ ...grantorsQuery(cluster.id), enabled: denied });
  return denied ? nodeDenial(cluster.name, grantors.data ?? []) : undefined;
}

export function importDenial(administrators: readonly string[]): string {
  const who = administrators.length > 0 ? either(administrators) : "an administrator";
  return `You may not import clusters: that needs the right to create clusters. Ask ${who}.`;
}

export function removalDenial(cluster: string, owners: readonly string[]): string {
  const who = either([...owners, "an administrator"]);
  return `You may not remove ${cluster}: that needs the role Cluster Owner. Ask ${who}.`;
}

export function nodeDenial(cluster: string, owners: readonly string[]): string {
  const who = either([...owners, "an administrator"]);
  return `You may not change nodes of ${cluster}: that needs the role Cluster Owner. Ask ${who}.`;
}

/** `Ann, Ben or an administrator`. */
function either(names: readonly string[]): string {
  const last = names.at(-1) ?? "";
  return names.length > 1 ? `${names.slice(0, -1).join(", ")} or ${last}` : last;
}
