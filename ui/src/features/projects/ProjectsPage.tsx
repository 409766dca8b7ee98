/** The projects of a cluster: each a group of namespaces with members and a quota. */

import { IconPlus } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { mayQuery } from "../../api/access.ts";
import { sentence } from "../../api/errors.ts";
import { useLiveFeed } from "../../api/freshness.ts";
import {
  createProject,
  type Namespace,
  type Project,
  projectNamespacesQuery,
  projectsQuery,
  readProjectsAnew,
} from "../../api/projects.ts";
import { count } from "../../lib/quantity.ts";
import { paths } from "../../paths.ts";
import { Button } from "../../ui/Button.tsx";
import { Field } from "../../ui/Field.tsx";
import { Blank, Notice, Skeleton } from "../../ui/Notice.tsx";
import { Page, PageHead } from "../../ui/Page.tsx";
import { Past } from "../../ui/Past.tsx";
import { State } from "../../ui/StateMark.tsx";
import table from "../../ui/Table.module.css";
import { notify } from "../../ui/Toasts.tsx";
import { useCluster } from "../clusters/ClusterPage.tsx";
import { isPast } from "../clusters/model.ts";
import { UnavailableNotice } from "../clusters/UnavailableNotice.tsx";
import { FormDialog } from "../forms/FormDialog.tsx";
import { namespacesOf, quotaUses, resourceTone, resourceWord, shortId } from "./model.ts";
import styles from "./Projects.module.css";

const TYPES = ["project"];

export function ProjectsPage() {
  const cluster = useCluster();
  const [creating, setCreating] = useState(false);
  const projects = useQuery(projectsQuery(cluster.id));
  const namespaces = useQuery(projectNamespacesQuery(cluster.id));
  const may = useQuery(mayQuery("create", "projects", { namespace: cluster.id }));
  const denial =
    may.data === false
      ? "You may not create projects: that needs the role Cluster Member or Create Projects."
      : undefined;
  useLiveFeed("/v3/subscribe", TYPES);
  const all = [...(projects.data ?? [])].sort((a, b) => a.name.localeCompare(b.name));
  const outside = namespacesOf(namespaces.data ?? [], undefined);
  return (
    <Page title={`Projects of ${cluster.name}`}>
      <PageHead
        title="Projects"
        facts={projects.data && count(all.length)}
        actions={
          <Button
            kind={denial ? "plain" : "primary"}
            deniedBecause={denial}
            onClick={() => setCreating(true)}
          >
            {!denial && <IconPlus size={16} stroke={1.5} />}
            Create project
          </Button>
        }
      />
      <UnavailableNotice cluster={cluster} />
      {projects.isPending && <Skeleton rows={3} what="projects" />}
      {projects.isError && (
        <Notice tone="err" title="The projects could not be read.">
          {sentence(projects.error)}
        </Notice>
      )}
      {projects.data?.length === 0 && (
        <Blank title="You are in no project here">
          A project groups namespaces, and says who may use them. Create one, or ask an owner of the
          cluster for a role in one.
        </Blank>
      )}
      {all.length > 0 && (
        <Past when={isPast(cluster)}>
          <ProjectTable cluster={cluster.name} projects={all} namespaces={namespaces.data} />
        </Past>
      )}
      {outside.length > 0 && (
        <p className="second">
          In no project: {outside.map(({ name }) => name).join(", ")}. The page of a project moves
          namespaces into it.
        </p>
      )}
      {creating && <CreateDialog onClose={() => setCreating(false)} />}
    </Page>
  );
}

interface ProjectTableProps {
  cluster: string;
  projects: readonly Project[];
  namespaces: readonly Namespace[] | undefined;
}

function ProjectTable({ cluster, projects, namespaces }: ProjectTableProps) {
  return (
    <div className={table.frame}>
      <table className={`${table.table} ${styles.projects}`}>
        <caption className="hidden">Projects</caption>
        <thead>
          <tr>
            <th scope="col" className={styles.state}>
              State
            </th>
            <th scope="col" className={styles.name}>
              Name
            </th>
            <th scope="col">Namespaces</th>
            <th scope="col">Quota</th>
          </tr>
        </thead>
        <tbody>
          {projects.map((project) => {
            const own = namespacesOf(namespaces ?? [], project.id).map(({ name }) => name);
            const quota = quotaUses(project).map(({ field, text }) => `${field.text} ${text}`);
            return (
              <tr key={project.id}>
                <td>
                  <State tone={resourceTone(project)}>{resourceWord(project)}</State>
                </td>
                <td className="strong" title={project.description || project.name}>
                  <Link className={styles.link} {...paths.project(cluster, shortId(project))}>
                    {project.name}
                  </Link>
                </td>
                <td className={table.quiet} title={own.join(", ")}>
                  {namespaces ? own.join(", ") || "none" : "—"}
                </td>
                <td className={table.quiet} title={quota.join(", ")}>
                  {quota.join(", ") || "no limits"}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function CreateDialog({ onClose }: { onClose(): void }) {
  const cluster = useCluster();
  const client = useQueryClient();
  const navigate = useNavigate();
  const create = useMutation({
    mutationFn: (data: FormData) =>
      createProject(cluster.id, {
        name: String(data.get("name")).trim(),
        description: String(data.get("description")).trim(),
      }),
    onSuccess: (project) => {
      notify("ok", `Created ${project.name}`);
      readProjectsAnew(client, cluster.id);
      void navigate(paths.project(cluster.name, shortId(project)));
    },
  });
  return (
    <FormDialog
      title="Create project"
      subtitle={`In ${cluster.name}. You become its owner.`}
      verb="Create"
      change={create}
      failure="It was not created."
      onSubmit={create.mutate}
      onClose={onClose}
    >
      <Field label="Name" name="name" required data-autofocus autoComplete="off" />
      <Field label="Description" name="description" autoComplete="off" />
    </FormDialog>
  );
}
