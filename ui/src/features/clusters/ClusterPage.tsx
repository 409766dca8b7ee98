/**
 * The frame of one cluster's pages: finds the cluster, follows its nodes, and shows if it does not
 * exist.
 */

import { IconDots, IconDownload, IconPin, IconPinnedOff, IconTrash } from "@tabler/icons-react";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { createContext, Suspense, use, useState } from "react";
import { sentence } from "../../api/errors.ts";
import { useLiveFeed } from "../../api/freshness.ts";
import { clustersQuery, kubeconfig } from "../../api/queries.ts";
import type { Cluster } from "../../api/types.ts";
import { day, point } from "../../lib/time.ts";
import { paths } from "../../paths.ts";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { download } from "../../ui/download.ts";
import { Menu, MenuItem } from "../../ui/Menu.tsx";
import { Blank, Notice, Skeleton } from "../../ui/Notice.tsx";
import { Page, PageHead } from "../../ui/Page.tsx";
import { StatePill } from "../../ui/StateMark.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { ShellButton } from "../shells/ShellButton.tsx";
import { ManagedNotice } from "./ManagedNotice.tsx";
import { byRef, providerWord, stateWord, toneOf } from "./model.ts";
import { togglePin, usePins } from "./pins.ts";
import { RemoveDialog } from "./RemoveDialog.tsx";
import { useRemovalDenial } from "./rights.ts";
import { UnavailableNotice } from "./UnavailableNotice.tsx";

const Current = createContext<Cluster | undefined>(undefined);

/** The cluster whose page this is. */
export function useCluster(): Cluster {
  const cluster = use(Current);
  if (!cluster) throw new Error("there is no cluster outside of a cluster's page");
  return cluster;
}

const NODE_TYPES = ["node"];

interface ClusterPageProps {
  /** Name or id, from the address. */
  reference: string;
  children: React.ReactNode;
}

export function ClusterPage({ reference, children }: ClusterPageProps) {
  const clusters = useQuery(clustersQuery);
  const cluster = byRef(clusters.data ?? [], reference);
  if (cluster) {
    return (
      <Current value={cluster}>
        <NodeFeed clusterId={cluster.id} />
        {/* While the code of a page comes, the heading stays. */}
        <Suspense fallback={<Opening title={reference} />}>{children}</Suspense>
      </Current>
    );
  }
  if (clusters.isPending) return <Opening title={reference} />;
  return (
    <Page title={reference}>
      <PageHead title={reference} />
      {clusters.isError && (
        <Notice tone="err" title={`${reference} could not be read.`}>
          {sentence(clusters.error)}
        </Notice>
      )}
      {clusters.data && <Gone reference={reference} />}
    </Page>
  );
}

function Opening({ title }: { title: string }) {
  return (
    <Page title={title}>
      <PageHead title={title} />
      <Skeleton rows={6} what={title} />
    </Page>
  );
}

/** Nodes change often and are many: they are followed only on pages that show them. */
function NodeFeed({ clusterId }: { clusterId: string }) {
  useLiveFeed(`/v3/clusters/${encodeURIComponent(clusterId)}/subscribe`, NODE_TYPES);
  return null;
}

function Gone({ reference }: { reference: string }) {
  return (
    <Blank
      title={`There is no cluster ${reference}`}
      actions={
        <Link className={buttonClass()} {...paths.clusters()}>
          All clusters
        </Link>
      }
    >
      It was removed, has another name, or you have no role on it.
    </Blank>
  );
}

interface ClusterHeadProps {
  /** The title of the page; absent on the overview. */
  page?: string;
  /** Whether the page itself says what helps while the cluster is unavailable. */
  saysWhatHelps?: boolean;
}

/** Title, state, facts, actions, and problems: the same on each page of a cluster. */
export function ClusterHead({ page, saysWhatHelps = false }: ClusterHeadProps) {
  const cluster = useCluster();
  const denial = useRemovalDenial(cluster);
  const navigate = useNavigate();
  const [removing, setRemoving] = useState(false);
  const pinned = usePins().includes(cluster.id);
  return (
    <>
      <PageHead
        title={page ? `${page} of ${cluster.name}` : cluster.name}
        mark={<StatePill tone={toneOf(cluster)}>{stateWord(cluster)}</StatePill>}
        facts={facts(cluster)}
        actions={
          <>
            <KubeconfigButton cluster={cluster} />
            <ShellButton cluster={cluster} />
            <Menu
              label={`More actions for ${cluster.name}`}
              trigger={
                <Button aria-label={`More actions for ${cluster.name}`}>
                  <IconDots size={16} stroke={1.5} />
                </Button>
              }
            >
              <MenuItem
                icon={
                  pinned ? (
                    <IconPinnedOff size={16} stroke={1.5} />
                  ) : (
                    <IconPin size={16} stroke={1.5} />
                  )
                }
                onSelect={() => togglePin(cluster.id)}
              >
                {pinned ? "Unpin" : "Pin to the sidebar"}
              </MenuItem>
              {!cluster.internal && (
                <MenuItem
                  icon={<IconTrash size={16} stroke={1.5} />}
                  danger
                  deniedBecause={denial}
                  onSelect={() => setRemoving(true)}
                >
                  Remove…
                </MenuItem>
              )}
            </Menu>
          </>
        }
      />
      <ManagedNotice cluster={cluster} />
      <UnavailableNotice cluster={cluster} withoutLink={saysWhatHelps} />
      {removing && (
        <RemoveDialog
          cluster={cluster}
          onClose={() => setRemoving(false)}
          onRemoved={() => void navigate(paths.clusters())}
        />
      )}
    </>
  );
}

function KubeconfigButton({ cluster }: { cluster: Cluster }) {
  const make = useMutation({
    mutationFn: () => kubeconfig(cluster.id),
    onSuccess: (text) => {
      download(`${cluster.name}.yaml`, text, "application/yaml");
      notify("ok", `${cluster.name}.yaml contains a token of yours: do not share it`);
    },
    onError: (error) => notify("err", `No kubeconfig: ${sentence(error)}`),
  });
  return (
    <Button onClick={() => make.mutate()}>
      <IconDownload size={16} stroke={1.5} />
      Kubeconfig
    </Button>
  );
}

function facts(cluster: Cluster): string {
  const version = cluster.version?.gitVersion;
  const created = point(cluster.created);
  const words = [
    cluster.internal ? "The management API itself" : cluster.provider && providerWord(cluster),
    version && `Kubernetes ${version}`,
    created && !cluster.internal && `here since ${day(created)}`,
  ];
  const text = words.filter(Boolean).join(", ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
