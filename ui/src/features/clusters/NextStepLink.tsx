/** The next step from a state: the link beside its reason. */

import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Cluster } from "../../api/types.ts";
import { paths } from "../../paths.ts";
import { Hint } from "../../ui/Hint.tsx";
import type { Reason } from "./model.ts";
import { RemoveDialog } from "./RemoveDialog.tsx";
import { useRemovalDenial } from "./rights.ts";

export function NextStepLink({ cluster, reason }: { cluster: Cluster; reason: Reason }) {
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
      return <ForcedRemoval cluster={cluster} label={reason.label} />;
    default:
      return null;
  }
}

function ForcedRemoval({ cluster, label }: { cluster: Cluster; label: string }) {
  const [removing, setRemoving] = useState(false);
  const denial = useRemovalDenial(cluster);
  return (
    <>
      <Hint text={denial}>
        <button
          type="button"
          className="link"
          aria-disabled={!!denial || undefined}
          onClick={() => setRemoving(!denial)}
        >
          {label}
        </button>
      </Hint>
      {removing && <RemoveDialog cluster={cluster} onClose={() => setRemoving(false)} />}
    </>
  );
}
