/** Why a user may do something in a cluster, which right is missing, and who may. */

import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { sentence } from "../../api/errors.ts";
import { explainAccess, listAllowed, userNamed } from "../../api/queries.ts";
import type { AccessExplanation, AccessQuestion, Allowed } from "../../api/types.ts";
import { Button } from "../../ui/Button.tsx";
import { Card } from "../../ui/Card.tsx";
import { Field } from "../../ui/Field.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { Page } from "../../ui/Page.tsx";
import { ClusterHead, useCluster } from "../clusters/ClusterPage.tsx";
import styles from "./AccessPage.module.css";
import { resourceParts, ruleWords, steps, subjectWords } from "./model.ts";

export function AccessPage() {
  const cluster = useCluster();
  const why = useMutation({
    mutationFn: async (data: FormData) => {
      const user = text(data, "user");
      const id = user ? await userNamed(user) : "";
      return explainAccess({ ...question(cluster.id, data), user: id });
    },
  });
  const who = useMutation({
    mutationFn: (data: FormData) => listAllowed(question(cluster.id, data)),
  });
  const [shown, setShown] = useState<"why" | "who">("why");
  const current = shown === "why" ? why : who;
  const explain = (kind: "why" | "who", form: HTMLFormElement) => {
    if (!form.reportValidity()) return;
    setShown(kind);
    (kind === "why" ? why : who).mutate(new FormData(form));
  };
  return (
    <Page title={`Access to ${cluster.name}`}>
      <ClusterHead page="Access" />
      <Card title="A request">
        <form
          className={styles.form}
          onSubmit={(event) => {
            event.preventDefault();
            explain("why", event.currentTarget);
          }}
        >
          <Field label="User" name="user" help="User name or id; empty for yourself." />
          <Field label="Verb" name="verb" required placeholder="get" autoCapitalize="off" />
          <Field
            label="Resource"
            name="resource"
            required
            placeholder="deployments.apps"
            help="With its API group and subresource, such as pods/exec; or a path."
          />
          <Field label="Namespace" name="namespace" help="Empty for all namespaces." />
          <Field label="Name" name="name" help="Empty for any object." />
          <div className={styles.buttons}>
            <Button kind="primary" type="submit">
              Explain
            </Button>
            <Button
              onClick={(event) => {
                const form = event.currentTarget.form;
                if (form) explain("who", form);
              }}
            >
              List who may
            </Button>
          </div>
        </form>
      </Card>
      <div aria-live="polite">
        {current.isPending && <p className="second">Reading the roles of the cluster…</p>}
        {current.isError && (
          <Notice tone="err" title="There is no explanation.">
            {sentence(current.error)}
          </Notice>
        )}
        {shown === "why" && why.data && !why.isPending && <Explanation found={why.data} />}
        {shown === "who" && who.data && !who.isPending && <Everybody found={who.data} />}
      </div>
    </Page>
  );
}

function text(data: FormData, field: string): string {
  return String(data.get(field) ?? "").trim();
}

function question(cluster: string, data: FormData): AccessQuestion {
  const resource = resourceParts(text(data, "resource"));
  return {
    cluster,
    verb: text(data, "verb"),
    ...resource,
    namespace: text(data, "namespace"),
    name: text(data, "name"),
  };
}

function Explanation({ found }: { found: AccessExplanation }) {
  if (!found.allowed) {
    return (
      <Notice tone="err" title="Not allowed.">
        {found.missing && <p>Missing: {ruleWords(found.missing)}.</p>}
        <p>{found.nextStep}</p>
        {found.granters && <p>Owners: {found.granters.join(", ")}</p>}
      </Notice>
    );
  }
  return (
    <Card title="Allowed" note={ways(found.because.length)}>
      {found.because.map((way) => (
        <ol
          key={`${way.binding.kind}/${way.binding.name}/${way.subject.name}`}
          className={styles.ways}
        >
          {steps(way).map((step) => (
            <li key={step} className={styles.way}>
              {step}
            </li>
          ))}
        </ol>
      ))}
    </Card>
  );
}

function ways(number: number): string {
  return number === 1 ? "in one way" : `in ${number} ways`;
}

function Everybody({ found }: { found: Allowed }) {
  const { users, others, leftOut } = found;
  if (users.length === 0 && others.length === 0) {
    return <Notice tone="wait" title="Nobody may do this." />;
  }
  return (
    <>
      <Card title="Users" note={users.length}>
        <ul className={styles.ways}>
          {users.map(({ user, username, displayName, because }) => (
            <li key={user} className={styles.way}>
              {[displayName, username || user].filter(Boolean).join(", ")}: {because.role.name}
            </li>
          ))}
        </ul>
      </Card>
      <Card title="Others that the cluster knows" note={others.length}>
        <ul className={styles.ways}>
          {others.map((other) => (
            <li key={subjectWords(other)} className={styles.way}>
              {subjectWords(other)}
            </li>
          ))}
        </ul>
        {leftOut > 0 && <p className="second">{leftOut} more are not listed.</p>}
      </Card>
    </>
  );
}
