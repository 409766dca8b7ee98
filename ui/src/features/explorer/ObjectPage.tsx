/** One object: its state, and all of it as YAML. */

import { IconDownload, IconEye, IconEyeOff, IconPencil, IconTrash } from "@tabler/icons-react";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { ApiError, sentence } from "../../api/errors.ts";
import {
  deleteKindObject,
  type KindObject,
  kindObjectQuery,
  kindsQuery,
  kindYamlQuery,
} from "../../api/kinds.ts";
import { paths } from "../../paths.ts";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { Code } from "../../ui/Code.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { download } from "../../ui/download.ts";
import { Blank, Notice, Skeleton } from "../../ui/Notice.tsx";
import { Page, PageHead } from "../../ui/Page.tsx";
import { StatePill } from "../../ui/StateMark.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { useCluster } from "../clusters/ClusterPage.tsx";
import styles from "./Explorer.module.css";
import { kindText, objectTone, objectWord, schemaOf } from "./model.ts";
import { YamlEditor } from "./YamlEditor.tsx";

interface ObjectPageProps {
  /** Its plural or id, from the address. */
  type: string;
  /** `namespace/name`, or `name`. */
  id: string;
}

export function ObjectPage({ type, id }: ObjectPageProps) {
  const cluster = useCluster();
  const { data: kinds = [] } = useQuery(kindsQuery(cluster.id));
  const object = useQuery(kindObjectQuery(cluster.id, type, id));
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
    return (
      <Page title={name}>
        <PageHead title={name} />
        {isGone ? (
          <Blank title={`There is no ${id} here`} actions={list}>
            It was deleted, or has another name.
          </Blank>
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
        facts={[kind, object.data?.metadata.namespace].filter(Boolean).join(" in ")}
        actions={object.data && <Delete type={type} kind={kind} object={object.data} />}
      />
      {object.data?.metadata.state?.message && (
        <Notice tone={objectTone(object.data)} title={objectWord(object.data)}>
          {object.data.metadata.state.message}
        </Notice>
      )}
      <Yaml type={type} id={id} object={object.data} />
    </Page>
  );
}

interface YamlProps extends ObjectPageProps {
  /** Once it has been read. */
  object: KindObject | undefined;
}

function Yaml({ type, id, object }: YamlProps) {
  const cluster = useCluster();
  const isSecret = type === "secrets" || type === "secret";
  const [shown, setShown] = useState(false);
  const [editing, setEditing] = useState(false);
  const denial =
    object && !object.links.update
      ? `Your roles in ${cluster.name} do not let you change this.`
      : undefined;
  const unread = isSecret && !shown ? "Show its values first." : "It has not been read.";
  const yaml = useQuery(kindYamlQuery(cluster.id, type, id, isSecret && !shown));
  return (
    <section className={styles.yaml} aria-label="YAML">
      <div className={styles.bar}>
        <h2 className="grow strong">YAML</h2>
        {isSecret && (
          <Button small aria-pressed={shown} onClick={() => setShown(!shown)}>
            {shown ? <IconEyeOff size={16} stroke={1.5} /> : <IconEye size={16} stroke={1.5} />}
            {shown ? "Hide values" : "Show values"}
          </Button>
        )}
        {!editing && (
          <Button
            small
            deniedBecause={denial}
            disabledBecause={yaml.data && !(isSecret && !shown) ? undefined : unread}
            onClick={() => setEditing(true)}
          >
            {!denial && <IconPencil size={16} stroke={1.5} />}
            Edit
          </Button>
        )}
        <Button
          small
          disabledBecause={yaml.data ? undefined : "It has not been read."}
          onClick={() =>
            download(`${id.replaceAll("/", "-")}.yaml`, yaml.data ?? "", "application/yaml")
          }
        >
          <IconDownload size={16} stroke={1.5} />
          Download
        </Button>
      </div>
      {yaml.isPending && <Skeleton rows={10} what={id} />}
      {yaml.isError && (
        <Notice tone="err" title="It could not be read as YAML.">
          {sentence(yaml.error)}
        </Notice>
      )}
      {yaml.data && editing && (
        <YamlEditor type={type} id={id} before={yaml.data} onDone={() => setEditing(false)} />
      )}
      {yaml.data && !editing && <Code text={yaml.data} what="the YAML" />}
    </section>
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
        <Dialog
          title={`Delete ${object.metadata.name}?`}
          subtitle={[kind, object.metadata.namespace, cluster.name].filter(Boolean).join(", ")}
          onClose={() => setAsking(false)}
          footer={
            <>
              <Button data-autofocus onClick={() => setAsking(false)}>
                Keep
              </Button>
              <Button kind="danger" onClick={() => remove.mutate()}>
                {remove.isPending ? "Under way…" : "Delete"}
              </Button>
            </>
          }
        >
          <p className="second">
            Kubernetes also deletes what this object owns, such as the pods of a Deployment.
          </p>
          {remove.isError && (
            <Notice tone="err" title="It was not deleted.">
              {sentence(remove.error)}
            </Notice>
          )}
        </Dialog>
      )}
    </>
  );
}
