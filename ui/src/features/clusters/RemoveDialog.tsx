/**
 * Removing or detaching a cluster: what is removed, what stays, and the confirmation by its name.
 */

import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError, sentence } from "../../api/errors.ts";
import { dependantsQuery, removeCluster } from "../../api/queries.ts";
import type { Cluster } from "../../api/types.ts";
import { count } from "../../lib/quantity.ts";
import { Button } from "../../ui/Button.tsx";
import { Code } from "../../ui/Code.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Field } from "../../ui/Field.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { Shape } from "../../ui/StateMark.tsx";
import { Tag } from "../../ui/Tags.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { isTrue } from "./conditions.ts";
import {
  DELETE_LEFTOVERS,
  isProduction,
  isSilent,
  LEFTOVERS,
  lastHeard,
  type RemovalOption,
  removalOptions,
  silence,
} from "./model.ts";
import styles from "./RemoveDialog.module.css";

interface RemoveDialogProps {
  cluster: Cluster;
  onClose(): void;
  /** Removal has begun. */
  onRemoved?: () => void;
}

export function RemoveDialog({ cluster, onClose, onRemoved }: RemoveDialogProps) {
  const [typed, setTyped] = useState("");
  const ways = removalOptions(cluster);
  const silent = isSilent(cluster);
  // If a cluster does not respond, the user chooses what to do, unless only one option is left.
  const usual = silent && ways.length > 1 ? undefined : ways[0];
  const [chosen, setChosen] = useState<RemovalOption["way"]>();
  const option = ways.find(({ way }) => way === chosen) ?? usual;
  // It is being removed already: the remaining choice is not to wait for the cluster any more.
  const forced = cluster.state === "removing";
  const remove = useMutation({
    mutationFn: (how: RemovalOption) => removeCluster(cluster, how),
    onSuccess: (_, { force, detach }) => {
      const doing = detach ? "Detaching" : "Removing";
      notify("rem", `${doing} ${cluster.name}${force ? " without waiting for it" : ""}`);
      onClose();
      onRemoved?.();
    },
  });
  const matches = typed === cluster.name;
  const blocked = option
    ? matches
      ? undefined
      : `Type ${cluster.name} first.`
    : "Choose what to do first.";
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
          <Button kind="danger" type="submit" form="remove-form" disabledBecause={blocked}>
            {remove.isPending ? "Under way…" : (option?.word ?? "Remove")}
          </Button>
        </>
      }
    >
      {silent && <Silence cluster={cluster} />}
      <p className="second">
        The cluster itself keeps running. These are removed from Drover, and cannot be restored
        without a backup:
      </p>
      <Dependants cluster={cluster} />
      {ways.length > 1 && <Ways ways={ways} chosen={option?.way} onChoose={setChosen} />}
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
          if (option && matches) remove.mutate(option);
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

/** The notice on a cluster that does not respond: why, and what stays in it. */
function Silence({ cluster }: { cluster: Cluster }) {
  return (
    <div className={styles.silence}>
      <Notice tone="off" title={`${cluster.name} does not respond ${silence(cluster)}.`}>
        Objects that Drover created in it cannot be deleted now. Without the cluster these stay in
        it:
        <ul className={styles.list}>
          {LEFTOVERS.map((leftover) => (
            <li key={leftover}>{leftover}</li>
          ))}
        </ul>
        To delete them later, in the cluster:
        <Code text={DELETE_LEFTOVERS} what="the command that deletes them" />
      </Notice>
    </div>
  );
}

interface WaysProps {
  ways: readonly RemovalOption[];
  chosen: RemovalOption["way"] | undefined;
  onChoose(way: RemovalOption["way"]): void;
}

function Ways({ ways, chosen, onChoose }: WaysProps) {
  return (
    <fieldset className={styles.ways}>
      <legend>What to do</legend>
      {ways.map(({ way, word, meaning }) => (
        <label key={way} className={styles.way}>
          <input
            type="radio"
            name="option"
            checked={way === chosen}
            onChange={() => onChoose(way)}
          />
          <span>
            <b>{word}</b>: {meaning}
          </span>
        </label>
      ))}
    </fieldset>
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
        {roles !== undefined && `, with ${some(roles, "role")}  of users on the cluster`}
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
        <b>The import command</b>. No agent ever registered, so nothing is deleted in the cluster
      </>
    );
  }
  return (
    <>
      <b>The agent and its rights</b> only if the cluster responds in time: see above
    </>
  );
}

function some(number: number, what: string): string {
  return `${count(number)} ${what}${number === 1 ? "" : "s"}`;
}
