/** The containers of a pod: what each does, and where the pod runs. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { mayInClusterQuery } from "../../api/access.ts";
import { type Use, usePodUse } from "../../api/metrics.ts";
import type { PodContent, PodKey } from "../../api/pods.ts";
import { bytes, count, millicores } from "../../lib/quantity.ts";
import { point } from "../../lib/time.ts";
import { Button } from "../../ui/Button.tsx";
import { useNarrow } from "../../ui/media.ts";
import { State } from "../../ui/StateMark.tsx";
import table from "../../ui/Table.module.css";
import { Ago, useNow } from "../../ui/Time.tsx";
import { FilesDialog } from "./FilesDialog.tsx";
import type { PodContainer } from "./model.ts";
import styles from "./Pods.module.css";

const UNKNOWN: Use = { cpu: undefined, memory: undefined };
const TICK_MS = 10_000;
const ROLES = { init: "init", main: undefined, ephemeral: "for debugging" } as const;

interface ContainersViewProps {
  place: PodKey;
  pod: PodContent;
  containers: readonly PodContainer[];
}

export function ContainersView({ place, pod: { spec, status }, containers }: ContainersViewProps) {
  const now = useNow(TICK_MS);
  const narrow = useNarrow();
  const uses = usePodUse(place);
  const facts: [string, string | undefined][] = [
    ["Node", spec.nodeName],
    ["Pod address", status?.podIP],
    ["Node address", status?.hostIP],
    ["Service account", spec.serviceAccountName],
    ["Quality of service", status?.qosClass],
  ];
  return (
    <section className={styles.containers} aria-label="Containers">
      <dl className={styles.details}>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value || "—"}</dd>
          </div>
        ))}
      </dl>
      <FilesButton place={place} containers={containers} />
      <div className={table.frame}>
        <table className={`${table.table} ${styles.table}`} data-narrow={narrow || undefined}>
          <caption className="hidden">Containers</caption>
          <thead>
            <tr>
              <th scope="col" className={styles.state}>
                State
              </th>
              <th scope="col">Name</th>
              {!narrow && (
                <>
                  <th scope="col" className={styles.image}>
                    Image
                  </th>
                  <th scope="col">Ports</th>
                </>
              )}
              {uses.size > 0 && !narrow && (
                <>
                  <th scope="col" className={`${styles.number} ${table.right}`}>
                    CPU
                  </th>
                  <th scope="col" className={`${styles.number} ${table.right}`}>
                    Memory
                  </th>
                </>
              )}
              <th scope="col" className={`${styles.number} ${table.right}`}>
                Restarts
              </th>
              {!narrow && (
                <th scope="col" className={`${styles.number} ${table.right}`}>
                  Since
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {containers.map((container) => (
              <Container
                key={container.name}
                container={container}
                use={uses.size > 0 ? (uses.get(container.name) ?? UNKNOWN) : undefined}
                narrow={narrow}
                now={now}
              />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

interface FilesButtonProps {
  place: PodKey;
  containers: readonly PodContainer[];
}

function FilesButton({ place, containers }: FilesButtonProps) {
  const [open, setOpen] = useState(false);
  const { clusterId, namespace, name } = place;
  const { data: may } = useQuery(
    mayInClusterQuery(clusterId, {
      ...{ verb: "create", group: "", resource: "pods", subresource: "exec" },
      ...{ namespace, name },
    }),
  );
  const denial =
    may === false
      ? "You may not copy files here: that needs the right to create pods/exec."
      : undefined;
  const idle = containers.some(({ isRunning }) => isRunning)
    ? undefined
    : "None of its containers is running.";
  return (
    <div className={styles.bar}>
      <Button small deniedBecause={denial} disabledBecause={idle} onClick={() => setOpen(true)}>
        Copy files…
      </Button>
      {open && <FilesDialog pod={place} containers={containers} onClose={() => setOpen(false)} />}
    </div>
  );
}

interface ContainerProps {
  container: PodContainer;
  /** Nothing where the pod is not measured. */
  use: Use | undefined;
  narrow: boolean;
  now: Date;
}

function Container({ container, use, narrow, now }: ContainerProps) {
  const { name, image, role, tone, word, reason, restarts, ports } = container;
  const since = point(container.since);
  return (
    <>
      <tr className={reason && table.explained}>
        <td>
          <State tone={tone}>{word}</State>
        </td>
        <td className="strong" title={name}>
          {name}
          {ROLES[role] && <span className="second"> {ROLES[role]}</span>}
        </td>
        {!narrow && (
          <>
            <td className={table.quiet} title={image}>
              {image}
            </td>
            <td className={table.quiet}>{ports.join(", ") || "—"}</td>
          </>
        )}
        {use && !narrow && (
          <>
            <td className={table.right}>{use.cpu === undefined ? "—" : millicores(use.cpu)}</td>
            <td className={table.right}>{use.memory === undefined ? "—" : bytes(use.memory)}</td>
          </>
        )}
        <td className={table.right}>{count(restarts)}</td>
        {!narrow && <td className={table.right}>{since ? <Ago at={since} now={now} /> : "—"}</td>}
      </tr>
      {reason && (
        <tr className={table.reason}>
          <td />
          <td colSpan={narrow ? 2 : use ? 7 : 5} className={styles.reason}>
            {reason}
          </td>
        </tr>
      )}
    </>
  );
}
