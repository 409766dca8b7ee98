/** A map of what belongs together: ingress, service, workload, pods. */

import { useQueries, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useKindFeed } from "../../api/freshness.ts";
import { type KindObject, kindListQuery } from "../../api/kinds.ts";
import { count } from "../../lib/quantity.ts";
import { paths } from "../../paths.ts";
import { Blank, Skeleton } from "../../ui/Notice.tsx";
import { Shape } from "../../ui/StateMark.tsx";
import { useCluster } from "../clusters/ClusterPage.tsx";
import { objectTone } from "../explorer/model.ts";
import styles from "./MapView.module.css";
import { type BelongingMap, belongings, LEVELS, type MapNode } from "./model.ts";

const WORKLOADS = ["apps.deployments", "apps.statefulsets", "apps.daemonsets"];
const KINDS = ["networking.k8s.io.ingresses", "services", ...WORKLOADS];
const TITLES = {
  ingresses: "Ingresses",
  services: "Services",
  workloads: "Workloads",
  pods: "Pods",
};
/** Most objects of a kind that are looked at. */
const LOOKED_AT = 500;
/** Of the picture, in pixels. */
const BOX = { width: 210, height: 44, gapX: 70, gapY: 12, top: 28 };

export function MapView({ object }: { object: KindObject }) {
  const cluster = useCluster();
  const namespace = object.metadata.namespace ?? "";
  const below = `/${encodeURIComponent(namespace)}?pagesize=${LOOKED_AT}&exclude=metadata.managedFields`;
  const lists = useQueries({
    queries: KINDS.map((kind) => kindListQuery(cluster.id, kind, below)),
  });
  const pods = useQuery(kindListQuery(cluster.id, "pods", below));
  useKindFeed(cluster.id, "pods", pods.data?.revision, { namespace });
  if (lists.some(({ isPending }) => isPending) || pods.isPending) {
    return <Skeleton rows={4} what="what belongs to it" />;
  }
  const [ingresses = [], services = [], ...workloads] = lists.map(({ data }) => data?.data ?? []);
  const found = { ingresses, services, workloads: workloads.flat(), pods: pods.data?.data ?? [] };
  const map = belongings(found, object.metadata.uid);
  const total = LEVELS.reduce((sum, level) => sum + map.columns[level].length, 0);
  if (total <= 1) {
    return (
      <Blank title="Nothing belongs to it">
        No ingress, service, workload or pod of this namespace that you may see is connected with
        it.
      </Blank>
    );
  }
  return <Picture map={map} cluster={cluster.name} current={object.metadata.uid} />;
}

interface PictureProps {
  map: BelongingMap;
  cluster: string;
  /** Key of the object whose map it is. */
  current: string;
}

function Picture({ map, cluster, current }: PictureProps) {
  const columns = LEVELS.filter((level) => map.columns[level].length > 0);
  const rows = Math.max(...columns.map((level) => map.columns[level].length));
  const size = {
    width: columns.length * (BOX.width + BOX.gapX) - BOX.gapX,
    height: BOX.top + rows * (BOX.height + BOX.gapY),
  };
  const places = new Map(
    columns.flatMap((level, column) =>
      map.columns[level].map(({ key }, row) => [key, place(column, row)] as const),
    ),
  );
  return (
    <div className={styles.map}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a wide map is scrolled by keyboard. */}
      <section className={styles.scroll} tabIndex={0} aria-label="Map">
        <div className={styles.picture} style={size}>
          <svg className={styles.lines} {...size} aria-hidden="true">
            {map.edges.map(([from, to]) => (
              <path key={`${from} ${to}`} d={line(places.get(from), places.get(to))} />
            ))}
          </svg>
          {columns.map((level, column) => (
            <ul key={level} aria-label={TITLES[level]}>
              <li className={styles.title} aria-hidden="true" style={{ left: place(column, 0).x }}>
                {TITLES[level]}
              </li>
              {map.columns[level].map((node, row) => (
                <li key={node.key} className={styles.place} style={corner(column, row)}>
                  <Box node={node} cluster={cluster} isCurrent={node.key === current} />
                </li>
              ))}
            </ul>
          ))}
        </div>
      </section>
      {map.morePods > 0 && (
        <p className="second">{count(map.morePods)} more pods are in the list of pods.</p>
      )}
    </div>
  );
}

function Box({
  node: { object },
  cluster,
  isCurrent,
}: {
  node: MapNode;
  cluster: string;
  isCurrent: boolean;
}) {
  const { name, state } = object.metadata;
  return (
    <Link
      className={styles.box}
      data-current={isCurrent || undefined}
      title={state?.message || name}
      {...paths.kindObject(cluster, object.type, object.id, { view: "map" })}
    >
      <Shape tone={objectTone(object)} />
      <span className={styles.words}>
        <span className="ellipsis">{name}</span>
        <span className={styles.kind}>{kindWord(object.type)}</span>
      </span>
    </Link>
  );
}

/** `apps.deployment` is a Deployment. */
function kindWord(type: string): string {
  const word = type.split(".").at(-1) ?? type;
  return word.charAt(0).toUpperCase() + word.slice(1);
}

interface Point {
  x: number;
  y: number;
}

/** The upper left corner of a box. */
function place(column: number, row: number): Point {
  return { x: column * (BOX.width + BOX.gapX), y: BOX.top + row * (BOX.height + BOX.gapY) };
}

function corner(column: number, row: number) {
  const { x, y } = place(column, row);
  return { left: x, top: y, width: BOX.width, height: BOX.height };
}

/** From the right edge of one box to the left edge of another. */
function line(from: Point | undefined, to: Point | undefined): string {
  if (!from || !to) return "";
  const [x1, y1, y2] = [from.x + BOX.width, from.y + BOX.height / 2, to.y + BOX.height / 2];
  const middle = (x1 + to.x) / 2;
  return `M${x1} ${y1} C${middle} ${y1} ${middle} ${y2} ${to.x} ${y2}`;
}
