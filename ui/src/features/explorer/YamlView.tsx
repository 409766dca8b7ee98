/** An object as YAML: read, downloaded, changed. */

import { IconDownload, IconEye, IconEyeOff, IconPencil } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { sentence } from "../../api/errors.ts";
import { type KindObject, kindYamlQuery } from "../../api/kinds.ts";
import { Button } from "../../ui/Button.tsx";
import { Code } from "../../ui/Code.tsx";
import { download } from "../../ui/download.ts";
import { Notice, Skeleton } from "../../ui/Notice.tsx";
import { useCluster } from "../clusters/ClusterPage.tsx";
import styles from "./Explorer.module.css";
import { YamlEditor } from "./YamlEditor.tsx";

interface YamlViewProps {
  /** Its plural or id, from the address. */
  type: string;
  object: KindObject;
}

export function YamlView({ type, object }: YamlViewProps) {
  const cluster = useCluster();
  const { id } = object;
  const isSecret = type === "secrets" || type === "secret";
  const [shown, setShown] = useState(false);
  const [editing, setEditing] = useState(false);
  const denial = object.links.update
    ? undefined
    : `Your roles in ${cluster.name} do not let you change this.`;
  const yaml = useQuery(kindYamlQuery(cluster.id, type, id, isSecret && !shown));
  const unread = isSecret && !shown ? "Show its values first." : undefined;
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
            // Not while it is being read: what was pressed opens the editor once it is there.
            disabledBecause={yaml.isError ? "It could not be read." : unread}
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
