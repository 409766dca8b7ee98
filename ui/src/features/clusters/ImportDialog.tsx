/**
 * Importing a running cluster: its name, the command to run, and the live progress of the agent.
 */

import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { ApiError, sentence } from "../../api/errors.ts";
import {
  createCluster,
  createRegistrationToken,
  registrationTokensQuery,
  settingQuery,
} from "../../api/queries.ts";
import type { Cluster, RegistrationToken } from "../../api/types.ts";
import { nameProblem } from "../../lib/names.ts";
import { clock, length, point } from "../../lib/time.ts";
import { paths } from "../../paths.ts";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { Code } from "../../ui/Code.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Field } from "../../ui/Field.tsx";
import { Notice, Skeleton } from "../../ui/Notice.tsx";
import { useNow } from "../../ui/Time.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { checklist, summary } from "./checklist.ts";
import styles from "./ImportDialog.module.css";
import { ImportSteps } from "./ImportSteps.tsx";
import { ManagedNotice } from "./ManagedNotice.tsx";
import { isAlreadyManaged } from "./managed.ts";
import { ReachNotice } from "./ReachNotice.tsx";
import { RemoveDialog } from "./RemoveDialog.tsx";
import { useRemovalDenial } from "./rights.ts";

/** The oldest Kubernetes version that the agent is tested with. */
const KUBERNETES_MIN = "1.28";

interface ImportDialogProps {
  /** `new`, or the id of the cluster that is being imported. */
  clusterId: string;
  clusters: readonly Cluster[];
  onClose(): void;
  onCreated(id: string): void;
}

export function ImportDialog({ clusterId, clusters, onClose, onCreated }: ImportDialogProps) {
  const cluster = clusters.find(({ id }) => id === clusterId);
  if (clusterId === "new") {
    return <NameDialog clusters={clusters} onClose={onClose} onCreated={onCreated} />;
  }
  return cluster ? (
    <FollowDialog cluster={cluster} onClose={onClose} />
  ) : (
    <Dialog
      title="Import a cluster"
      onClose={onClose}
      footer={<Button onClick={onClose}>Close</Button>}
    >
      <Skeleton rows={3} what="the cluster" />
    </Dialog>
  );
}

type NameDialogProps = Omit<ImportDialogProps, "clusterId">;

function NameDialog({ clusters, onClose, onCreated }: NameDialogProps) {
  const [name, setName] = useState("");
  const [left, setLeft] = useState(false);
  const taken = clusters.map((cluster) => cluster.name);
  const problem = nameProblem(name, taken);
  const create = useMutation({
    mutationFn: createCluster,
    onSuccess: (cluster) => onCreated(cluster.id),
  });
  const refused = create.error && nameRefusal(create.error);
  const submit = (event: React.FormEvent) => {
    event.preventDefault();
    setLeft(true);
    if (problem) document.querySelector<HTMLInputElement>("#import-form input")?.focus();
    else create.mutate(name);
  };
  const shown = left && problem;
  return (
    <Dialog
      title="Import a cluster"
      subtitle={`Any Kubernetes ${KUBERNETES_MIN} or newer. The cluster only needs to reach ${window.location.host}.`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" form="import-form">
            {create.isPending ? "Creating the command…" : "Get the command"}
          </Button>
        </>
      }
    >
      <ReachNotice />
      <form id="import-form" onSubmit={submit} noValidate>
        <Field
          label="Name"
          value={name}
          data-autofocus
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => {
            setName(event.target.value);
            create.reset();
          }}
          onBlur={() => setLeft(name !== "")}
          help="The name for users, such as prod-eu-1. It is not stored in the cluster itself."
          error={
            shown ? (
              <>
                {problem.text}{" "}
                {problem.suggestion && (
                  <button
                    type="button"
                    className="link"
                    onClick={() => setName(problem.suggestion ?? "")}
                  >
                    Use {problem.suggestion}
                  </button>
                )}
              </>
            ) : (
              refused
            )
          }
        />
      </form>
    </Dialog>
  );
}

function nameRefusal(error: Error): string {
  if (error instanceof ApiError && error.isForbidden) {
    return "You may not add clusters. An administrator can, or can grant you the right.";
  }
  return sentence(error);
}

type Way = "curl" | "kubectl" | "drover";

function FollowDialog({ cluster, onClose }: { cluster: Cluster; onClose(): void }) {
  const now = useNow(1000);
  const tokens = useQuery(registrationTokensQuery(cluster.id));
  const [removing, setRemoving] = useState(false);
  const token = newest(tokens.data ?? []);
  const steps = checklist(cluster, token, now);
  const active = cluster.state === "active";
  const refused = isAlreadyManaged(cluster);
  if (removing) return <RemoveDialog cluster={cluster} onClose={() => setRemoving(false)} />;
  return (
    <Dialog
      wide
      title={`Import ${cluster.name}`}
      subtitle={`Any Kubernetes ${KUBERNETES_MIN} or newer. The cluster only needs to reach ${window.location.host}.`}
      closeLabel={active || refused ? "Close" : "Close; the import continues"}
      onClose={onClose}
      footer={
        <FollowFooter cluster={cluster} onClose={onClose} onCancel={() => setRemoving(true)} />
      }
    >
      {tokens.isError && (
        <Notice tone="err" title="The command could not be read.">
          {sentence(tokens.error)}
        </Notice>
      )}
      {refused ? (
        <div className={styles.reach}>
          <ManagedNotice cluster={cluster} onRemove={() => setRemoving(true)} />
        </div>
      ) : (
        !active && <ReachNotice />
      )}
      <Command cluster={cluster} token={token} now={now} pending={tokens.isPending} />
      <div className={styles.watch}>
        <h3 className={styles.step}>2 Watch it arrive</h3>
        <span className="small second" role="status">
          {summary(steps)}
        </span>
      </div>
      <ImportSteps steps={steps} />
    </Dialog>
  );
}

interface FollowFooterProps {
  cluster: Cluster;
  onClose(): void;
  onCancel(): void;
}

function FollowFooter({ cluster, onClose, onCancel }: FollowFooterProps) {
  const denial = useRemovalDenial(cluster);
  if (cluster.state === "active") {
    return (
      <>
        <span className="grow small second">
          {cluster.name} is Active and can be used by everybody who has a role on it.
        </span>
        <Button onClick={onClose}>Close</Button>
        <Link className={buttonClass("primary")} {...paths.cluster(cluster.name)}>
          Open {cluster.name}
        </Link>
      </>
    );
  }
  // It does not continue by itself, and the notice shows what can be done.
  if (isAlreadyManaged(cluster)) return <Button onClick={onClose}>Close</Button>;
  return (
    <>
      <span className="grow small second">
        You can close this. The import continues, and the list of clusters shows its progress.
      </span>
      <Button kind="danger" deniedBecause={denial} onClick={onCancel}>
        Cancel import…
      </Button>
      <Button onClick={onClose}>Close</Button>
    </>
  );
}

/** The newest token. */
function newest(tokens: readonly RegistrationToken[]): RegistrationToken | undefined {
  const ready = tokens.filter(({ command }) => command);
  return ready.sort((one, other) => (other.created ?? "").localeCompare(one.created ?? ""))[0];
}

interface CommandProps {
  cluster: Cluster;
  token: RegistrationToken | undefined;
  now: Date;
  pending: boolean;
}

function Command({ cluster, token, now, pending }: CommandProps) {
  const authority = useQuery(settingQuery("cacerts"));
  const [chosen, setWay] = useState<Way>();
  const again = useMutation({
    mutationFn: () => createRegistrationToken(cluster.id),
    onError: (error) => notify("err", `No new command: ${sentence(error)}`),
  });
  // kubectl fetches the manifest itself, and trusts only the authorities of its machine.
  const way = chosen ?? (authority.data ? "curl" : "kubectl");
  const used = cluster.conditions?.some((c) => c.type === "Pending" && c.status === "True");
  return (
    <>
      <div className={styles.watch}>
        <h3 className={styles.step}>1 Run this once against the cluster</h3>
        <Ways chosen={way} onChoose={setWay} />
      </div>
      {token ? (
        <Code
          text={commandText(way, cluster, token)}
          what="the import command"
          focused={!isAlreadyManaged(cluster)}
        />
      ) : (
        <Skeleton rows={1} what={pending ? "the command" : "the command as it is made"} />
      )}
      <p className={styles.note}>
        {used
          ? "It has been used: the agent has a key of its own now."
          : validity(cluster, token, now)}{" "}
        <button type="button" className="link" onClick={() => again.mutate()}>
          Create a new one
        </button>
        {token?.manifestUrl && (
          <a
            className="link"
            href={new URL(token.manifestUrl).pathname}
            target="_blank"
            rel="noreferrer"
          >
            Read what it installs
          </a>
        )}
      </p>
      <p className={styles.note}>{WAY_NOTES[way]}</p>
    </>
  );
}

const WAY_WORDS: Record<Way, string> = {
  kubectl: "kubectl",
  curl: "Own authority",
  drover: "drover",
};

const WAY_NOTES: Record<Way, string> = {
  kubectl: "For servers whose certificate is from an authority that your machine trusts.",
  curl: "This server's certificate is from its own authority. The agent checks it by its fingerprint, which is in the manifest.",
  drover:
    "With Drover's own command line, which shows the same checklist. FILE is a kubeconfig of the cluster.",
};

function Ways({ chosen, onChoose }: { chosen: Way; onChoose(way: Way): void }) {
  return (
    <fieldset className={styles.ways}>
      <legend className="hidden">How to run it</legend>
      {(Object.keys(WAY_WORDS) as Way[]).map((way) => (
        <label key={way} className={styles.way}>
          <input
            type="radio"
            name="way"
            className="hidden"
            checked={way === chosen}
            onChange={() => onChoose(way)}
          />
          {WAY_WORDS[way]}
        </label>
      ))}
    </fieldset>
  );
}

function commandText(way: Way, cluster: Cluster, token: RegistrationToken): string {
  if (way === "kubectl") return token.command ?? "";
  if (way === "curl") return token.insecureCommand ?? "";
  return `drover cluster import ${cluster.name} --kubeconfig FILE --resume`;
}

function validity(cluster: Cluster, token: RegistrationToken | undefined, now: Date): string {
  const expires = point(token?.expiresAt);
  if (!expires) return "";
  const left = expires.getTime() - now.getTime();
  if (left <= 0) return `It expired at ${clock(expires)} and is not valid any more.`;
  return `For ${cluster.name} only, for one agent, for another ${length(left)}.`;
}
