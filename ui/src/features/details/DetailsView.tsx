/** What matters of an object of a common kind, in words and tables rather than as YAML. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { sentence } from "../../api/errors.ts";
import { type KindObject, wholeObjectQuery } from "../../api/kinds.ts";
import { paths } from "../../paths.ts";
import { Notice, Skeleton } from "../../ui/Notice.tsx";
import table from "../../ui/Table.module.css";
import { useCluster } from "../clusters/ClusterPage.tsx";
import styles from "./Details.module.css";
import {
  type ClaimContent,
  claimFacts,
  type Facts,
  type IngressContent,
  ingressFacts,
  ingressRoutes,
  type ServiceContent,
  serviceFacts,
  servicePorts,
  type VolumeContent,
  volumeFacts,
} from "./model.ts";

type Content = ServiceContent & IngressContent & ClaimContent & VolumeContent;

/** The kinds that have it, by plural or id. */
const KINDS: Record<string, (props: ShownProps) => React.ReactNode> = {
  service: ServiceDetails,
  "networking.k8s.io.ingress": IngressDetails,
  persistentvolumeclaim: ClaimDetails,
  persistentvolume: VolumeDetails,
};

function detailsOf(type: string) {
  return KINDS[type.replace(/(ingress)es$|s$/, "$1")] ?? KINDS[type];
}

export function hasDetails(type: string): boolean {
  return detailsOf(type) !== undefined;
}

interface DetailsProps {
  /** Its plural or id, from the address. */
  type: string;
  object: KindObject;
}

export function DetailsView({ type, object }: DetailsProps) {
  const cluster = useCluster();
  const { data, error } = useQuery(wholeObjectQuery<Content>(cluster.id, type, object.id));
  const Shown = detailsOf(type);
  if (error) {
    return (
      <Notice tone="err" title="It could not be read.">
        {sentence(error)}
      </Notice>
    );
  }
  if (!data || !Shown) return <Skeleton rows={4} what={object.id} />;
  return (
    <section className={styles.details} aria-label="Details">
      <Shown content={data} namespace={object.metadata.namespace ?? ""} />
    </section>
  );
}

interface ShownProps {
  content: Content;
  namespace: string;
}

function ServiceDetails({ content }: ShownProps) {
  const ports = servicePorts(content);
  return (
    <>
      <FactList facts={serviceFacts(content)} />
      {ports.length > 0 && (
        <Rows
          caption="Ports"
          heads={["Name", "Port", "Port of the pods", "Port of the nodes"]}
          rows={ports}
        />
      )}
    </>
  );
}

function IngressDetails({ content, namespace }: ShownProps) {
  const cluster = useCluster();
  const routes = ingressRoutes(content).map(({ host, path, backend, service }) => [
    host,
    path,
    service ? (
      <Link
        key={backend}
        className="link"
        {...paths.kindObject(cluster.name, "services", `${namespace}/${service}`)}
      >
        {backend}
      </Link>
    ) : (
      backend
    ),
  ]);
  return (
    <>
      <FactList facts={ingressFacts(content)} />
      {routes.length > 0 && (
        <Rows caption="Routes" heads={["Host", "Path", "Leads to"]} rows={routes} />
      )}
    </>
  );
}

function ClaimDetails({ content }: ShownProps) {
  const cluster = useCluster();
  const volume = content.spec?.volumeName;
  return (
    <>
      <FactList facts={claimFacts(content)} />
      {volume && (
        <p>
          Its volume is{" "}
          <Link className="link" {...paths.kindObject(cluster.name, "persistentvolumes", volume)}>
            {volume}
          </Link>
          .
        </p>
      )}
    </>
  );
}

function VolumeDetails({ content }: ShownProps) {
  const cluster = useCluster();
  const claim = content.spec?.claimRef;
  const id = claim && `${claim.namespace}/${claim.name}`;
  return (
    <>
      <FactList facts={volumeFacts(content)} />
      {id && (
        <p>
          It belongs to the claim{" "}
          <Link className="link" {...paths.kindObject(cluster.name, "persistentvolumeclaims", id)}>
            {id}
          </Link>
          .
        </p>
      )}
    </>
  );
}

function FactList({ facts }: { facts: Facts }) {
  return (
    <dl className={styles.facts}>
      {facts
        .map(([name, value]) => [name, value?.replace(/^(, )+|(, )+$/g, "")])
        .filter(([, value]) => value)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

interface RowsProps {
  caption: string;
  heads: readonly string[];
  rows: readonly (readonly React.ReactNode[])[];
}

function Rows({ caption, heads, rows }: RowsProps) {
  return (
    <div className={table.frame}>
      <table className={`${table.table} ${styles.rows}`}>
        <caption className="hidden">{caption}</caption>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: rows in the order of the object.
            <tr key={index}>
              {row.map((cell, place) => (
                <td key={heads[place]} className={place > 0 ? table.quiet : "strong"}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
