/** What a ConfigMap or a Secret holds, key by key; values of Secrets show on demand only. */

import { IconEye, IconEyeOff } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { sentence } from "../../api/errors.ts";
import { type KindObject, objectDataQuery } from "../../api/kinds.ts";
import { bytes, count } from "../../lib/quantity.ts";
import { Button } from "../../ui/Button.tsx";
import { Code } from "../../ui/Code.tsx";
import { Blank, Notice, Skeleton } from "../../ui/Notice.tsx";
import { useCluster } from "../clusters/ClusterPage.tsx";
import styles from "./Details.module.css";
import { decoded } from "./model.ts";

interface DataProps {
  /** Its plural or id, from the address. */
  type: string;
  object: KindObject;
}

export function hasData(type: string): boolean {
  return /^(configmaps?|secrets?)$/.test(type);
}

export function EntriesView({ type, object }: DataProps) {
  const cluster = useCluster();
  const isSecret = type.startsWith("secret");
  const [shown, setShown] = useState(!isSecret);
  const data = useQuery(objectDataQuery(cluster.id, type, object.id, !shown));
  if (data.isError) {
    return (
      <Notice tone="err" title="It could not be read.">
        {sentence(data.error)}
      </Notice>
    );
  }
  if (!data.data) return <Skeleton rows={4} what={object.id} />;
  const entries = [
    ...Object.entries(data.data.data ?? {}).map(([key, text]): [string, Value] => [
      key,
      isSecret ? decoded(text) : { text, bytes: text.length },
    ]),
    ...Object.entries(data.data.binaryData ?? {}).map(([key, text]): [string, Value] => [
      key,
      { bytes: decoded(text).bytes },
    ]),
  ].sort(([one], [other]) => one.localeCompare(other));
  if (entries.length === 0) return <Blank title="It holds nothing">No keys so far.</Blank>;
  return (
    <section className={styles.details} aria-label="Data">
      <div className={styles.bar}>
        <h2 className="grow strong">
          {count(entries.length)} {entries.length === 1 ? "key" : "keys"}
        </h2>
        {isSecret && (
          <Button small aria-pressed={shown} onClick={() => setShown(!shown)}>
            {shown ? <IconEyeOff size={16} stroke={1.5} /> : <IconEye size={16} stroke={1.5} />}
            {shown ? "Hide values" : "Show values"}
          </Button>
        )}
      </div>
      {entries.map(([key, value]) => (
        <section key={key} className={styles.entry} aria-label={key}>
          <h3>{key}</h3>
          {!shown ? (
            <p className="third">Hidden</p>
          ) : value.text === undefined ? (
            <p className="second">{bytes(value.bytes)} that are no text</p>
          ) : (
            <Code text={value.text} what={key} />
          )}
        </section>
      ))}
    </section>
  );
}

interface Value {
  /** Nothing if it is no text. */
  text?: string;
  bytes: number;
}
