/** All kinds that a cluster serves, custom resources too, with the number of their objects. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { sentence } from "../../api/errors.ts";
import { countsQuery, type KindSchema, kindsQuery } from "../../api/kinds.ts";
import { count } from "../../lib/quantity.ts";
import { paths } from "../../paths.ts";
import { Button } from "../../ui/Button.tsx";
import { Blank, Notice, Skeleton } from "../../ui/Notice.tsx";
import { Page } from "../../ui/Page.tsx";
import table from "../../ui/Table.module.css";
import { ClusterHead, useCluster } from "../clusters/ClusterPage.tsx";
import styles from "./Explorer.module.css";

export function KindsPage() {
  const cluster = useCluster();
  const kinds = useQuery(kindsQuery(cluster.id));
  const [text, setText] = useState("");
  const words = text.toLowerCase().split(/\s+/);
  const found = kinds.data?.filter(({ id, pluralName }) =>
    words.every((word) => id.includes(word) || pluralName.includes(word)),
  );
  return (
    <Page title={`All kinds of ${cluster.name}`}>
      <ClusterHead page="All kinds" />
      <search className={styles.bar}>
        <input
          className={styles.filter}
          aria-label="Filter by name or group"
          placeholder="Name or group"
          value={text}
          spellCheck={false}
          onChange={(event) => setText(event.target.value)}
        />
      </search>
      {kinds.isPending && <Skeleton rows={10} what={`kinds of ${cluster.name}`} />}
      {kinds.isError && (
        <Notice
          tone="err"
          title="The kinds could not be read."
          actions={
            <Button small onClick={() => void kinds.refetch()}>
              Try again
            </Button>
          }
        >
          {sentence(kinds.error)}
        </Notice>
      )}
      {found && found.length > 0 && <KindsTable kinds={found} />}
      {found?.length === 0 && (
        <Blank title={text ? "No kind matches" : "You may list nothing here"}>
          {text ? "Try fewer letters." : `Owners of ${cluster.name} can give you a role.`}
        </Blank>
      )}
    </Page>
  );
}

function KindsTable({ kinds }: { kinds: readonly KindSchema[] }) {
  const cluster = useCluster();
  const { data: counts } = useQuery(countsQuery(cluster.id));
  return (
    <div className={table.frame}>
      <table className={table.table}>
        <caption className="hidden">Kinds</caption>
        <thead>
          <tr>
            <th scope="col">Kind</th>
            <th scope="col">Group</th>
            <th scope="col" className={styles.version}>
              Version
            </th>
            <th scope="col" className={`${styles.number} ${table.right}`}>
              Objects
            </th>
          </tr>
        </thead>
        <tbody>
          {kinds.map(({ id, pluralName, attributes }) => (
            <tr key={id}>
              <td className="strong">
                <Link className={styles.name} {...paths.kind(cluster.name, pluralName)}>
                  {attributes.kind}
                </Link>
              </td>
              <td className={table.quiet}>{attributes.group || "core"}</td>
              <td className={table.quiet}>{attributes.version}</td>
              <td className={table.right}>{counts?.has(id) ? count(counts.get(id) ?? 0) : "—"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
