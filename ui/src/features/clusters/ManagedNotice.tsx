/**
 * On an entry whose cluster another entry manages: which one, and the solutions with their
 * commands.
 */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { importCheckQuery } from "../../api/queries.ts";
import type { Cluster } from "../../api/types.ts";
import { paths } from "../../paths.ts";
import { Button } from "../../ui/Button.tsx";
import { Code } from "../../ui/Code.tsx";
import { Notice } from "../../ui/Notice.tsx";
import styles from "./ManagedNotice.module.css";
import {
  adoptCommand,
  asNewCommand,
  isAlreadyManaged,
  type Manager,
  managerOf,
  RESTORE_AGENT,
} from "./managed.ts";
import { RemoveDialog } from "./RemoveDialog.tsx";
import { useRemovalDenial } from "./rights.ts";

interface ManagedNoticeProps {
  cluster: Cluster;
  /** If a dialog is open already: replaces it by the one that removes the entry. */
  onRemove?: () => void;
}

export function ManagedNotice(props: ManagedNoticeProps) {
  return isAlreadyManaged(props.cluster) ? <Refused {...props} /> : null;
}

function Refused({ cluster, onRemove }: ManagedNoticeProps) {
  const check = useQuery(importCheckQuery(cluster.id));
  const denial = useRemovalDenial(cluster);
  const [removing, setRemoving] = useState(false);
  const manager = managerOf(check.data);
  if (check.isPending) return null;
  return (
    <>
      <Notice
        tone="err"
        title={`This cluster is managed already, ${manager.words}.`}
        actions={
          <>
            <Button
              small
              kind="danger"
              deniedBecause={denial}
              onClick={onRemove ?? (() => setRemoving(true))}
            >
              Remove {cluster.name}…
            </Button>
            {manager.name && (
              <Link className="link" {...paths.cluster(manager.name)}>
                Open {manager.name}
              </Link>
            )}
          </>
        }
      >
        <Ways cluster={cluster} manager={manager} />
      </Notice>
      {removing && <RemoveDialog cluster={cluster} onClose={() => setRemoving(false)} />}
    </>
  );
}

const ASK_ADMINISTRATOR = "ask an administrator to give it a new agent.";

/** The possible causes, and their solutions. */
function Ways({ cluster, manager: { name } }: { cluster: Cluster; manager: Manager }) {
  const other = name ? <b>{name}</b> : "the other entry";
  const own = <b>{cluster.name}</b>;
  return (
    <>
      <p>
        The agent that connected for {own} was refused: a cluster has one entry. Choose what
        applies; FILE is a kubeconfig of the cluster.
      </p>
      <ul className={styles.ways}>
        <li>
          <p>
            The command was run in the wrong cluster: restore the Deployment of the agent of {other}{" "}
            there. Then run the command in the right cluster, or remove {own}.
          </p>
          <Code text={RESTORE_AGENT} what="the command that restores the agent" tone="onError" />
        </li>
        <li>
          <p>
            The agent of {other} is lost:{" "}
            {name ? (
              <>
                give {other} a new agent, then remove {own}.
              </>
            ) : (
              ASK_ADMINISTRATOR
            )}
          </p>
          {name && (
            <Code
              text={adoptCommand(name)}
              what={`the command that gives ${name} a new agent`}
              tone="onError"
            />
          )}
        </li>
        <li>
          <p>
            This is a clone of that cluster, such as one restored from a snapshot: import it as a
            cluster of its own.
          </p>
          <Code
            text={asNewCommand(cluster.name)}
            what="the command that imports a clone"
            tone="onError"
          />
        </li>
      </ul>
    </>
  );
}
