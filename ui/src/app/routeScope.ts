/** The current cluster and page, from the address. */

import { useLocation, useParams } from "@tanstack/react-router";

export type ClusterView = "overview" | "nodes" | "conditions" | "audit";

const VIEWS: readonly ClusterView[] = ["nodes", "conditions", "audit"];

export interface RouteScope {
  path: string;
  /** As in the address: a name or an id. */
  cluster: string | undefined;
  view: ClusterView;
}

export function useRouteScope(): RouteScope {
  const path = useLocation({ select: (location) => location.pathname });
  const { cluster } = useParams({ strict: false });
  const end = path.split("/").at(-1);
  const view = (cluster && VIEWS.find((one) => one === end)) || "overview";
  return { path, cluster, view };
}
