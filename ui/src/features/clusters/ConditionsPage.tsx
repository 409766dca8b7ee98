/** Every condition of a cluster: its meaning, since when, and what helps if it is not true. */

import { point } from "../../lib/time.ts";
import { Card } from "../../ui/Card.tsx";
import { Code } from "../../ui/Code.tsx";
import { Page } from "../../ui/Page.tsx";
import { Past, usePast } from "../../ui/Past.tsx";
import { Shape } from "../../ui/StateMark.tsx";
import { Tag } from "../../ui/Tags.tsx";
import { Ago, useNow } from "../../ui/Time.tsx";
import { ClusterHead, useCluster } from "./ClusterPage.tsx";
import styles from "./ConditionsPage.module.css";
import { type Explained, explainAll } from "./conditions.ts";
import { isPast, reasonOf } from "./model.ts";
import { NextStepLink } from "./NextStepLink.tsx";

const TICK_MS = 5_000;

export function ConditionsPage() {
  const cluster = useCluster();
  const now = useNow(TICK_MS);
  const all = explainAll(cluster);
  const past = isPast(cluster);
  const open = all.filter(({ holds }) => !holds);
  const held = all.filter(({ holds }) => holds);
  const reason = reasonOf(cluster, now);
  const wayOn = reason?.next === "import" || reason?.next === "force-removal" ? reason : undefined;
  return (
    <Page title={`Conditions of ${cluster.name}`}>
      <ClusterHead page="Conditions" saysWhatHelps />
      {open.length > 0 && (
        <Card
          title="Does not hold"
          note={open.length}
          aside={wayOn && <NextStepLink cluster={cluster} reason={wayOn} />}
          flush
        >
          <ul>
            {open.map((condition) => (
              <Line key={condition.type} condition={condition} now={now} />
            ))}
          </ul>
        </Card>
      )}
      <Card title="Holds" note={held.length} flush>
        <ul>
          {held.map((condition) => (
            <Past key={condition.type} when={past && condition.observed}>
              <Line condition={condition} now={now} />
            </Past>
          ))}
          {held.length === 0 && <li className={styles.line}>Nothing so far.</li>}
        </ul>
      </Card>
    </Page>
  );
}

/** A command at the end of the text on what helps. */
const COMMAND = /\b(kubectl .+)$/;

function Line({ condition, now }: { condition: Explained; now: Date }) {
  const { title, type, tone, meaning, next, said, reason, since, holds } = condition;
  const at = point(since);
  const command = COMMAND.exec(next)?.[1];
  const words = command ? next.replace(command, "").trim() : next;
  const past = usePast();
  const more = said && !meaning.toLowerCase().includes(said.toLowerCase()) ? said : "";
  return (
    <li className={styles.line} data-holds={holds} data-past={past || undefined}>
      <span className={styles.mark}>
        <Shape tone={tone} />
      </span>
      <div className="grow">
        <p className={styles.head}>
          <span className="strong">{title}</span>
          <code className="third">{type}</code>
          {reason && <Tag>{reason}</Tag>}
          <span className="hidden">{holds ? (past ? "held" : "holds") : "does not hold"}</span>
        </p>
        <p className="second">
          {past && "As last known: "}
          {meaning}
        </p>
        {more && <p className="small third">{`Drover says: ${more}`}</p>}
        {!holds && words && (
          <p className={styles.next}>
            <b>What helps:</b> {words}
          </p>
        )}
        {command && !holds && <Code text={command} what="the command that helps" />}
      </div>
      {at && (
        <span className="third small">
          <Ago at={at} now={now} />
        </span>
      )}
    </li>
  );
}
