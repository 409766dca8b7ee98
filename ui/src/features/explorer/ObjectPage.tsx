/** One object: its state, what can be done with it, and the views of its kind. */

import { IconTrash } from "@tabler/icons-react";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { ApiError, sentence } from "../../api/errors.ts";
import { useKindFeed } from "../../api/freshness.ts";
import {
  deleteKindObject,
  type KindObject,
  kindObjectQuery,
  kindsQuery,
  ownedCountsQuery,
  wholeObjectQuery,
} from "../../api/kinds.ts";
import type { WorkloadContent } from "../../api/workloads.ts";
import { count } from "../../lib/quantity.ts";
import { paths } from "../../paths.ts";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { DangerDialog } from "../../ui/DangerDialog.tsx";
import { Blank, Notice, Skeleton } from "../../ui/Notice.tsx";
import { Page, PageHead } from "../../ui/Page.tsx";
import { StatePill } from "../../ui/StateMark.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { useCluster } from "../clusters/ClusterPage.tsx";
import { readiness, workloadKind } from "../workloads/model.ts";
import { WorkloadActions } from "../workloads/WorkloadActions.tsx";
import { kindText, objectTone, objectWord, schemaOf } from "./model.ts";
import { ObjectViews } from "./ObjectViews.tsx";
import type { ObjectSearch } from "./search.ts";

interface ObjectPageProps {
  /** Its plural or id, from the address. */
  type: string;
  /** `namespace/name`, or `name`. */
  id: string;
  search: ObjectSearch;
}

export function ObjectPage({ type, id, search }: ObjectPageProps) {
  const cluster = useCluster();
  const { data: kinds = [] } = useQuery(kindsQuery(cluster.id));
  const object = useQuery(kindObjectQuery(cluster.id, type, id));
  const workload = workloadKind(type);
  const { data: whole } = useQuery({
    ...wholeObjectQuery<WorkloadContent>(cluster.id, workload?.plural ?? type, id),
    enabled: workload !== undefined,
  });
  useKindFeed(cluster.id, type, object.data?.metadata.resourceVersion, { id });
  const schema = schemaOf(kinds, type);
  const text = kindText(type, schema);
  const name = id.split("/").at(-1) ?? id;
  const list = (
    <Link className={buttonClass()} {...paths.kind(cluster.name, type)}>
      All {text}
    </Link>
  );
  if (object.isError) {
    const { error } = object;
    const isGone = error instanceof ApiError && error.isNotFound;
    const isDenied = error instanceof ApiError && error.isForbidden;
    return (
      <Page title={name}>
        <PageHead title={name} />
        {isGone ? (
          <Blank title={`There is no ${id} here`} actions={list}>
            It was deleted, or has another name.
          </Blank>
        ) : isDenied ? (
          <Notice tone="off" title={`You may not see ${id}.`} actions={list}>
            Your roles in {cluster.name} do not let you read this {schema?.attributes.kind ?? text}.
            Owners of the cluster give roles.
          </Notice>
        ) : (
          <Notice tone="err" title={`${id} could not be read.`} actions={list}>
            {sentence(error)}
          </Notice>
        )}
      </Page>
    );
  }
  const kind = schema?.attributes.kind ?? text;
  return (
    <Page title={`${name} of ${cluster.name}`}>
      <PageHead
        title={name}
        mark={
          object.data && (
            <StatePill tone={objectTone(object.data)}>{objectWord(object.data)}</StatePill>
          )
        }
        facts={[
          [kind, object.data?.metadata.namespace].filter(Boolean).join(" in "),
          whole && readiness(whole),
        ]
          .filter(Boolean)
          .join(" · ")}
        actions={
          object.data && (
            <>
              {workload && whole && <WorkloadActions kind={workload} workload={whole} />}
              <Delete type={type} kind={kind} object={object.data} />
            </>
          )
        }
      />
      {object.data?.metadata.state?.message && (
        <Notice tone={objectTone(object.data)} title={objectWord(object.data)}>
          {object.data.metadata.state.message}
        </Notice>
      )}
      {object.data ? (
        <ObjectViews type={type} object={object.data} search={search} />
      ) : (
        <Skeleton rows={10} what={id} />
      )}
    </Page>
  );
}

interface DeleteProps {
  type: string;
  kind: string;
  object: KindObject;
}

function Delete({ type, kind, object }: DeleteProps) {
  const cluster = useCluster();
  const navigate = useNavigate();
  const [asking, setAsking] = useState(false);
  const denial = object.links.remove
    ? undefined
    : `Your roles in ${cluster.name} do not let you delete this.`;
  const remove = useMutation({
    mutationFn: () => deleteKindObject(cluster.id, type, object.id),
    onSuccess: () => {
      notify("rem", `Deleting ${object.id}`);
      void navigate(paths.kind(cluster.name, type));
    },
  });
  return (
    <>
      <Button deniedBecause={denial} onClick={() => setAsking(true)}>
        {!denial && <IconTrash size={16} stroke={1.5} />}
        Delete…
      </Button>
      {asking && (
        <DangerDialog
          title={`Delete ${object.metadata.name}?`}
          subtitle={[kind, object.metadata.namespace, cluster.name].filter(Boolean).join(", ")}
          verb="Delete"
          isPending={remove.isPending}
          failed="It was not deleted."
          failure={remove.error ? sentence(remove.error) : undefined}
          onConfirm={() => remove.mutate()}
          onClose={() => setAsking(false)}
        >
          <TakesAlong type={type} object={object} />
        </DangerDialog>
      )}
    </>
  );
}

/** What is deleted together with an object. */
function TakesAlong({ type, object }: { type: string; object: KindObject }) {
  const cluster = useCluster();
  const { metadata } = object;
  const { data: kinds = [] } = useQuery(kindsQuery(cluster.id));
  const { data: owned = [] } = useQuery(ownedCountsQuery(cluster.id, kinds, metadata));
  if (type === "namespaces" || type === "namespace") {
    return <p>Everything in the namespace {metadata.name} is deleted with it.</p>;
  }
  const words = owned.map(
    ([plural, number]) => `${count(number)} ${kindText(plural, schemaOf(kinds, plural))}`,
  );
  return (
    <p className="second">
      {words.length > 0
        ? `It takes along ${words.join(", ")}, and what those own.`
        : "Kubernetes also deletes what this object owns."}
    </p>
  );
}
