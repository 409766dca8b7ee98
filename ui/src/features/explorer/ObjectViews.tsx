/** The views of an object: those of its kind, its events, and all of it as YAML. */

import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { mayInClusterQuery } from "../../api/access.ts";
import { type KindObject, wholeObjectQuery } from "../../api/kinds.ts";
import type { PodContent } from "../../api/pods.ts";
import type { WorkloadContent } from "../../api/workloads.ts";
import { paths } from "../../paths.ts";
import { useShortcut } from "../../ui/keyboard.ts";
import { Notice, Skeleton } from "../../ui/Notice.tsx";
import { useCluster } from "../clusters/ClusterPage.tsx";
import { DetailsView, hasDetails } from "../details/DetailsView.tsx";
import { EntriesView, hasData } from "../details/EntriesView.tsx";
import { MapView } from "../map/MapView.tsx";
import { ContainersView } from "../pods/ContainersView.tsx";
import { LogsView } from "../pods/LogsView.tsx";
import { containersOf } from "../pods/model.ts";
import { selectorText, type WorkloadKind, workloadKind } from "../workloads/model.ts";
import { RevisionsView } from "../workloads/RevisionsView.tsx";
import { EventsView } from "./EventsView.tsx";
import styles from "./Explorer.module.css";
import { OwnedView } from "./OwnedView.tsx";
import type { ObjectSearch, ViewName } from "./search.ts";
import { YamlView } from "./YamlView.tsx";

/** Has the code of the terminal, which most pages do not need. */
const ShellView = lazy(() => import("../pods/ShellView.tsx"));

interface View {
  name: ViewName;
  text: string;
}

const COMMON: readonly [View, View] = [
  { name: "events", text: "Events" },
  { name: "yaml", text: "YAML" },
];
const MAP: View = { name: "map", text: "Map" };
/** Kinds on a map that are no workloads. */
const MAPPED = /^(services?|networking\.k8s\.io\.ingress(es)?)$/;
const OF_PODS: readonly View[] = [
  { name: "containers", text: "Containers" },
  { name: "logs", text: "Logs" },
  { name: "shell", text: "Shell" },
  MAP,
  ...COMMON,
];

/** The views of a kind; the first is shown at first. */
function viewsOf(type: string): readonly View[] {
  if (isPod(type)) return OF_PODS;
  const workload = workloadKind(type);
  if (!workload) {
    const details: View[] = hasDetails(type) ? [{ name: "details", text: "Details" }] : [];
    const map = MAPPED.test(type) ? [MAP] : [];
    const [events, yaml] = COMMON;
    const data: View[] = hasData(type) ? [{ name: "data", text: "Data" }] : [];
    return [...details, ...map, yaml, ...data, events];
  }
  const owned: View = { name: "owned", text: workload.canSuspend ? "Jobs" : "Pods" };
  const revisions: View[] = workload.history ? [{ name: "revisions", text: "Revisions" }] : [];
  const map = workload.canRestart ? [MAP] : [];
  return [owned, ...map, ...revisions, ...COMMON];
}

function isPod(type: string): boolean {
  return type === "pods" || type === "pod";
}

interface ObjectViewsProps {
  /** Its plural or id, from the address. */
  type: string;
  object: KindObject;
  search: ObjectSearch;
}

export function ObjectViews({ type, object, search }: ObjectViewsProps) {
  const cluster = useCluster();
  const views = viewsOf(type);
  const current = views.find(({ name }) => name === search.view) ?? views[0];
  const workload = workloadKind(type);
  useViewKeys(type, object.id, views);
  return (
    <>
      <nav className={styles.views} aria-label="Views">
        {views.map(({ name, text }) => (
          <Link
            key={name}
            className={styles.view}
            {...paths.kindObject(cluster.name, type, object.id, { ...search, view: name })}
            activeProps={{}}
            aria-current={name === current?.name ? "page" : undefined}
          >
            {text}
          </Link>
        ))}
      </nav>
      {current?.name === "map" && <MapView object={object} />}
      {current?.name === "details" && <DetailsView type={type} object={object} />}
      {current?.name === "data" && <EntriesView type={type} object={object} />}
      {current?.name === "events" && <EventsView object={object} />}
      {current?.name === "yaml" && <YamlView type={type} object={object} />}
      {isPod(type) && <PodView object={object} view={current?.name} search={search} type={type} />}
      {workload && <WorkloadView kind={workload} object={object} view={current?.name} />}
    </>
  );
}

/** Single keys lead to the views that an object has. */
function useViewKeys(type: string, id: string, views: readonly View[]): void {
  const cluster = useCluster();
  const navigate = useNavigate();
  const show = (view: ViewName) => {
    if (!views.some(({ name }) => name === view)) return;
    void navigate(paths.kindObject(cluster.name, type, id, { view }));
  };
  useShortcut("l", () => show("logs"));
  useShortcut("s", () => show("shell"));
  useShortcut("e", () => show("events"));
  useShortcut("y", () => show("yaml"));
}

interface PodViewProps extends ObjectViewsProps {
  view: ViewName | undefined;
}

function PodView({ type, object, view, search }: PodViewProps) {
  const cluster = useCluster();
  const navigate = useNavigate();
  const isShown = view === "containers" || view === "logs" || view === "shell";
  const { data: pod } = useQuery({
    ...wholeObjectQuery<PodContent>(cluster.id, type, object.id),
    enabled: isShown,
  });
  const denial = usePodDenial(object, view);
  if (!isShown) return null;
  if (denial) {
    return (
      <Notice tone="off" title={denial}>
        Ask an owner of the project or of the cluster for a role that has it.
      </Notice>
    );
  }
  if (!pod) return <Skeleton rows={4} what={object.id} />;
  const { name, namespace = "" } = object.metadata;
  const containers = containersOf(pod);
  const place = {
    pod: { clusterId: cluster.id, namespace, name },
    containers,
    chosen: search.container,
    onChoose: (container: string) =>
      void navigate(paths.kindObject(cluster.name, type, object.id, { view, container })),
  };
  if (view === "containers")
    return <ContainersView place={place.pod} pod={pod} containers={containers} />;
  if (view === "logs") return <LogsView {...place} />;
  if (!containers.some(({ isRunning }) => isRunning)) {
    return (
      <Notice tone="wait" title="None of its containers is running.">
        A shell needs one that is. What they do is under Containers.
      </Notice>
    );
  }
  return (
    <Suspense fallback={<Skeleton rows={4} what="the terminal" />}>
      <ShellView {...place} />
    </Suspense>
  );
}

/** Why the user may not see the logs of a pod or open a shell in it; nothing if they may. */
function usePodDenial({ metadata }: KindObject, view: ViewName | undefined): string | undefined {
  const cluster = useCluster();
  const isShell = view === "shell";
  const { data: may } = useQuery({
    ...mayInClusterQuery(cluster.id, {
      ...{ verb: isShell ? "create" : "get", group: "", resource: "pods" },
      ...{ subresource: isShell ? "exec" : "log", name: metadata.name },
      namespace: metadata.namespace ?? "",
    }),
    enabled: isShell || view === "logs",
  });
  if (may !== false || (!isShell && view !== "logs")) return undefined;
  return isShell
    ? "You may not open a shell here: that needs the right to create pods/exec."
    : "You may not read logs here: that needs the right to get pods/log.";
}

interface WorkloadViewProps {
  kind: WorkloadKind;
  object: KindObject;
  view: ViewName | undefined;
}

function WorkloadView({ kind, object, view }: WorkloadViewProps) {
  const cluster = useCluster();
  const { data: workload } = useQuery(
    wholeObjectQuery<WorkloadContent>(cluster.id, kind.plural, object.id),
  );
  if (view !== "owned" && view !== "revisions") return null;
  if (!workload) return <Skeleton rows={4} what={object.id} />;
  const { uid, namespace = "" } = object.metadata;
  if (view === "revisions") return <RevisionsView kind={kind} workload={workload} />;
  if (kind.canSuspend) {
    const selection = { filter: `metadata.ownerReferences.uid='${uid}'` };
    return <OwnedView type="batch.jobs" text="Jobs" namespace={namespace} selection={selection} />;
  }
  const selection = { labelSelector: selectorText(workload.spec.selector ?? {}) };
  return <OwnedView type="pods" text="Pods" namespace={namespace} selection={selection} />;
}
