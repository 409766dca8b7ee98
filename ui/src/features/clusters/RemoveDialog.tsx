/** Removing a cluster: what goes along, what stays, and its name typed before it happens. */

import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError, sentence } from "../../api/errors.ts";
import { dependantsQuery, forceRemoval, removeCluster } from "../../api/queries.ts";
import type { Cluster } from "../../api/types.ts";
import { count } from "../../lib/quantity.ts";
import { Button } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Field } from "../../ui/Field.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { Shape } from "../../ui/StateMark.tsx";
import { Tag } from "../../ui/Tags.tsx";
import { tell } from "../../ui/Toasts.tsx";
import { isTrue } from "./conditions.ts";
import { isProduction, lastHeard } from "./model.ts";
import styles from "./RemoveDialog.module.css";

interface RemoveDialogProps {
  cluster: Cluster;
  onClose(): void;
  /** Removal has begun. */
  onRemoved?: () => void;
}

export function RemoveDialog({ cluster, onClose, onRemoved }: RemoveDialogProps) {
  const [typed, setTyped] = useState("");
  // Already on its way out: then it is about not waiting for the cluster any more.
  const forced = cluster.state === "removing";
  const remove = useMutation({
    mutationFn: () => (forced ? forceRemoval(cluster) : removeCluster(cluster.id)),
    onSuccess: () => {
      tell("rem", forced ? `${cluster.name} goes without its cluster` : `Removing ${cluster.name}`);
      onClose();
      onRemoved?.();
    },
  });
  const matches = typed === cluster.name;
  const title = forced ? `Go on without ${cluster.name}?` : `Remove ${cluster.name}?`;
  return (
    <Dialog
      title={
        <>
          <Shape tone="err" />
          {title}
          {isProduction(cluster) && <Tag inverse>production</Tag>}
        </>
      }
      onClose={onClose}
      footer={
        <>
          <Button data-autofocus onClick={onClose}>
            Keep
          </Button>
          <Button
            kind="danger"
            type="submit"
            form="remove-form"
            disabledBecause={matches ? undefined : `Type ${cluster.name} first.`}
          >
            {remove.isPending ? "Removing…" : "Remove"}
          </Button>
        </>
      }
    >
      <p className="second">
        The cluster itself keeps running. From Drover these go, and cannot be brought back without a
        backup:
      </p>
      <Dependants cluster={cluster} />
      {remove.isError && (
        <Notice tone="err" title="It was not removed.">
          {remove.error instanceof ApiError && remove.error.isForbidden
            ? "You may not remove this cluster. Its owners and administrators may."
            : sentence(remove.error)}
        </Notice>
      )}
      <form
        id="remove-form"
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          if (matches) remove.mutate();
        }}
      >
        <Field
          label={`Type ${cluster.name}`}
          value={typed}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => setTyped(event.target.value)}
        />
      </form>
    </Dialog>
  );
}

function Dependants({ cluster }: { cluster: Cluster }) {
  const { data } = useQuery(dependantsQuery(cluster.id));
  const projects = data?.projects;
  const roles = data?.roles;
  const nodes = cluster.nodeCount ?? 0;
  return (
    <ul className={styles.list}>
      <li>
        <b>{projects === undefined ? "Its projects" : some(projects, "project")}</b>
        {roles !== undefined && `, with ${some(roles, "role")} of people on the cluster`}
      </li>
      {nodes > 0 && (
        <li>
          <b>What is known of {some(nodes, "node")}</b>. The nodes themselves stay as they are
        </li>
      )}
      <li>
        <b>Access through Drover</b>: kubeconfigs that lead here stop working at once
      </li>
      <li>{agentWords(cluster)}</li>
    </ul>
  );
}

function agentWords(cluster: Cluster): React.ReactNode {
  if (isTrue(cluster, "Connected")) {
    return (
      <>
        <b>The agent and its rights</b> in the cluster are deleted there
      </>
    );
  }
  if (lastHeard(cluster) === undefined) {
    return (
      <>
        <b>The import command</b>. No agent ever called in, so nothing is deleted in the cluster
      </>
    );
  }
  return (
    <>
      <b>The agent and its rights</b> in the cluster cannot be reached. Drover waits up to 5 minutes
      for the agent; then they stay behind in namespace cattle-system
    </>
  );
}

function some(number: number, what: string): string {
  return `${count(number)} ${what}${number === 1 ? "" : "s"}`;
}
