/** The way on from a state: the link beside its reason. */

import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Cluster } from "../../api/types.ts";
import { paths } from "../../paths.ts";
import type { Reason } from "./model.ts";
import { RemoveDialog } from "./RemoveDialog.tsx";

export function NextStepLink({ cluster, reason }: { cluster: Cluster; reason: Reason }) {
  const [removing, setRemoving] = useState(false);
  switch (reason.next) {
    case "import":
      return (
        <Link className="link" {...paths.clusters({ import: cluster.id })}>
          {reason.label}
        </Link>
      );
    case "conditions":
      return (
        <Link className="link" {...paths.conditions(cluster.name)}>
          {reason.label}
        </Link>
      );
    case "force-removal":
      return (
        <>
          <button type="button" className="link" onClick={() => setRemoving(true)}>
            {reason.label}
          </button>
          {removing && <RemoveDialog cluster={cluster} onClose={() => setRemoving(false)} />}
        </>
      );
    default:
      return null;
  }
}
