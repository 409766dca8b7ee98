/** Opens a kubectl shell in a cluster, or says why there is none. */

import { IconTerminal2 } from "@tabler/icons-react";
import type { Cluster } from "../../api/types.ts";
import { Button } from "../../ui/Button.tsx";
import { shellObstacle, showShell } from "./shells.ts";

export function ShellButton({ cluster }: { cluster: Cluster }) {
  return (
    <Button disabledBecause={shellObstacle(cluster)} onClick={() => showShell(cluster)}>
      <IconTerminal2 size={16} stroke={1.5} />
      Shell
    </Button>
  );
}
