/** The sidebar: a flat list for the current scope, always open, with counts. */

import {
  type Icon,
  IconActivityHeartbeat,
  IconAffiliate,
  IconDatabase,
  IconFileText,
  IconFolder,
  IconFolders,
  IconHexagons,
  IconHistory,
  IconHome,
  IconKey,
  IconLayoutGrid,
  IconLogin2,
  IconPuzzle,
  IconServer,
  IconSettings,
  IconStack2,
  IconUsers,
} from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link, type LinkProps } from "@tanstack/react-router";
import { Fragment } from "react";
import { countsQuery } from "../api/kinds.ts";
import { clustersQuery } from "../api/queries.ts";
import type { Cluster } from "../api/types.ts";
import { byRef, problems, stateWord, toneOf } from "../features/clusters/model.ts";
import { usePins } from "../features/clusters/pins.ts";
import { USUAL_KINDS, type UsualKind } from "../features/explorer/model.ts";
import { monogram } from "../lib/names.ts";
import { count } from "../lib/quantity.ts";
import { paths } from "../paths.ts";
import { Shape } from "../ui/StateMark.tsx";
import { Monogram } from "../ui/Tags.tsx";
import type { RouteScope } from "./routeScope.ts";
import styles from "./Sidebar.module.css";

/** An entry is the current one at its own address only; filters do not matter. */
const EXACTLY = { exact: true, includeSearch: false } as const;

export function Sidebar({ scope }: { scope: RouteScope }) {
  const { data: clusters = [] } = useQuery(clustersQuery);
  return scope.cluster ? (
    <ClusterSide reference={scope.cluster} />
  ) : (
    <nav className={styles.side} aria-label="Fleet">
      <Entry icon={IconHexagons} text="Clusters" number={clusters.length} to={paths.clusters()} />
      <Entry icon={IconUsers} text="Users" to={paths.users()} />
      <Entry icon={IconLogin2} text="Identity providers" to={paths.providers()} />
      <Entry icon={IconPuzzle} text="Cluster drivers" to={paths.drivers()} />
      <Entry icon={IconSettings} text="Settings" to={paths.settings()} />
      <Entry icon={IconHistory} text="Audit log" to={paths.audit()} />
      <Pinned />
    </nav>
  );
}

function ClusterSide({ reference }: { reference: string }) {
  const { data: clusters = [] } = useQuery(clustersQuery);
  const cluster = byRef(clusters, reference);
  const open = cluster ? problems(cluster).length : 0;
  return (
    <nav className={styles.side} aria-label={`Cluster ${reference}`}>
      <Entry icon={IconHome} text="Overview" to={paths.cluster(reference)} />
      <Entry
        icon={IconServer}
        text="Nodes"
        number={cluster?.nodeCount ?? undefined}
        to={paths.nodes(reference)}
      />
      <Entry
        icon={IconActivityHeartbeat}
        text="Conditions"
        number={open || undefined}
        note={open ? "do not hold" : undefined}
        to={paths.conditions(reference)}
      />
      <Entry icon={IconFolders} text="Projects" to={paths.projects(reference)} />
      <Entry icon={IconUsers} text="Members" to={paths.members(reference)} />
      <Entry icon={IconKey} text="Access" to={paths.access(reference)} />
      <Entry icon={IconHistory} text="Audit log" to={paths.clusterAudit(reference)} />
      {cluster && <Kinds cluster={cluster} />}
      <Pinned />
    </nav>
  );
}

const GROUPS = [...new Set(USUAL_KINDS.map(({ group }) => group))];
const GROUP_ICONS: Record<UsualKind["group"], Icon> = {
  "": IconFolder,
  Workloads: IconStack2,
  Network: IconAffiliate,
  Storage: IconDatabase,
  Config: IconFileText,
};

/** The usual kinds of objects with their numbers; those that the user may not list are left out. */
function Kinds({ cluster }: { cluster: Cluster }) {
  // One that does not respond has nothing to count.
  const enabled = cluster.state === "active";
  const { data: counts } = useQuery({ ...countsQuery(cluster.id), enabled });
  const shown = USUAL_KINDS.filter(({ id }) => !counts || counts.has(id));
  return (
    <>
      <div className={styles.kinds}>
        {GROUPS.map((group) => {
          const members = shown.filter((kind) => kind.group === group);
          if (members.length === 0) return null;
          return (
            <Fragment key={group}>
              {group && <h2 className={styles.title}>{group}</h2>}
              {members.map(({ plural, id, text }) => (
                <Entry
                  key={id}
                  icon={GROUP_ICONS[group]}
                  text={text}
                  number={counts?.get(id)}
                  to={paths.kind(cluster.name, plural)}
                />
              ))}
            </Fragment>
          );
        })}
      </div>
      <h2 className={styles.title}>More</h2>
      <Entry
        icon={IconLayoutGrid}
        text="All kinds"
        number={counts?.size}
        to={paths.kinds(cluster.name)}
      />
    </>
  );
}

interface EntryProps {
  icon: Icon;
  text: string;
  number?: number | undefined;
  /** What the number counts, for screen readers. */
  note?: string | undefined;
  to: LinkProps;
}

function Entry({ icon: Icon, text, number, note, to }: EntryProps) {
  return (
    <Link className={styles.entry} activeOptions={EXACTLY} title={text} {...to}>
      <Icon size={16} stroke={1.5} aria-hidden="true" />
      <span className={styles.word}>{text}</span>
      {number !== undefined && <span className={styles.number}>{count(number)}</span>}
      {note && <span className="hidden"> {note}</span>}
    </Link>
  );
}

/** Pinned clusters, with a shape for those that need attention. */
function Pinned() {
  const { data: clusters = [] } = useQuery(clustersQuery);
  const pins = usePins();
  const pinned = pins.flatMap((id) => clusters.find((cluster) => cluster.id === id) ?? []);
  if (pinned.length === 0) return null;
  return (
    <>
      <h2 className={styles.title}>Pinned</h2>
      {pinned.map((cluster) => {
        const tone = toneOf(cluster);
        return (
          <Link
            key={cluster.id}
            className={styles.entry}
            activeOptions={EXACTLY}
            title={cluster.name}
            {...paths.cluster(cluster.name)}
          >
            <Monogram letters={monogram(cluster.name)} />
            <span className={styles.word}>{cluster.name}</span>
            {tone !== "ok" && (
              <span className={styles.number}>
                <Shape tone={tone} />
                <span className="hidden">{stateWord(cluster)}</span>
              </span>
            )}
          </Link>
        );
      })}
    </>
  );
}
