/** One project: its namespaces, its members, and what it may use. */

import { IconTrash } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { mayQuery } from "../../api/access.ts";
import { sentence } from "../../api/errors.ts";
import { useLiveFeed } from "../../api/freshness.ts";
import {
  deleteProject,
  type Project,
  projectNamespacesQuery,
  projectsQuery,
  readProjectsAnew,
} from "../../api/projects.ts";
import { paths } from "../../paths.ts";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { DangerDialog } from "../../ui/DangerDialog.tsx";
import { Blank, Notice, Skeleton } from "../../ui/Notice.tsx";
import { Page, PageHead } from "../../ui/Page.tsx";
import { StatePill } from "../../ui/StateMark.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { useCluster } from "../clusters/ClusterPage.tsx";
import { UnavailableNotice } from "../clusters/UnavailableNotice.tsx";
import { Members } from "../members/Members.tsx";
import { isBuiltIn, namespacesOf, resourceTone, resourceWord, shortId } from "./model.ts";
import { Namespaces } from "./Namespaces.tsx";
import { Quota } from "./Quota.tsx";

const TYPES = ["project"];

/** `reference`: the part of the project's id after its cluster's, or its name. */
export function ProjectPage({ reference }: { reference: string }) {
  const cluster = useCluster();
  const projects = useQuery(projectsQuery(cluster.id));
  useLiveFeed("/v3/subscribe", TYPES);
  const project =
    projects.data?.find(({ id }) => id === `${cluster.id}:${reference}`) ??
    projects.data?.find(({ name }) => name === reference);
  if (project) return <KnownProject project={project} />;
  return (
    <Page title={reference}>
      <PageHead title={reference} />
      {projects.isPending && <Skeleton rows={4} what="projects" />}
      {projects.isError && (
        <Notice tone="err" title="The project could not be read.">
          {sentence(projects.error)}
        </Notice>
      )}
      {projects.data && (
        <Blank
          title={`There is no project ${reference} here`}
          actions={
            <Link className={buttonClass()} {...paths.projects(cluster.name)}>
              All projects
            </Link>
          }
        >
          It was deleted, or you have no role in it.
        </Blank>
      )}
    </Page>
  );
}

function KnownProject({ project }: { project: Project }) {
  const cluster = useCluster();
  return (
    <Page title={`${project.name} of ${cluster.name}`}>
      <PageHead
        title={project.name}
        mark={<StatePill tone={resourceTone(project)}>{resourceWord(project)}</StatePill>}
        facts={project.description || "Project"}
        actions={<Delete project={project} />}
      />
      <UnavailableNotice cluster={cluster} />
      {project.transitioningMessage && (
        <Notice tone={resourceTone(project)} title={resourceWord(project)}>
          {project.transitioningMessage}
        </Notice>
      )}
      <Namespaces project={project} />
      <Members scope={{ level: "project", id: project.id, name: project.name }} />
      <Quota project={project} />
    </Page>
  );
}

function Delete({ project }: { project: Project }) {
  const cluster = useCluster();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [asking, setAsking] = useState(false);
  const { data: namespaces = [] } = useQuery(projectNamespacesQuery(cluster.id));
  const own = namespacesOf(namespaces, project.id).map(({ name }) => name);
  const remove = useMutation({
    mutationFn: () => deleteProject(project.id),
    onSuccess: () => {
      notify("rem", `Deleting ${project.name}`);
      readProjectsAnew(client, cluster.id);
      void navigate(paths.projects(cluster.name));
    },
  });
  const place = { namespace: cluster.id, name: shortId(project) };
  const may = useQuery(mayQuery("delete", "projects", place));
  const denial =
    may.data === false
      ? "You may not delete this project: that needs the role Project Owner."
      : undefined;
  const builtIn = isBuiltIn(project)
    ? "Drover made this project with the cluster; it stays."
    : undefined;
  return (
    <>
      <Button deniedBecause={denial} disabledBecause={builtIn} onClick={() => setAsking(true)}>
        {!denial && <IconTrash size={16} stroke={1.5} />}
        Delete…
      </Button>
      {asking && (
        <DangerDialog
          title={`Delete ${project.name}?`}
          verb="Delete"
          isPending={remove.isPending}
          failed="It was not deleted."
          failure={remove.error ? sentence(remove.error) : undefined}
          onConfirm={() => remove.mutate()}
          onClose={() => setAsking(false)}
        >
          <p className="second">
            Its members lose their roles in it.{" "}
            {own.length > 0
              ? `Its namespaces stay, in no project: ${own.join(", ")}.`
              : "It has no namespaces."}
          </p>
        </DangerDialog>
      )}
    </>
  );
}
