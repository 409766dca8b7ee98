/** Who has roles in a cluster. Roles in its projects are on the pages of these. */

import { Link } from "@tanstack/react-router";
import { paths } from "../../paths.ts";
import { Page } from "../../ui/Page.tsx";
import { ClusterHead, useCluster } from "../clusters/ClusterPage.tsx";
import { Members } from "./Members.tsx";

export function MembersPage() {
  const cluster = useCluster();
  return (
    <Page title={`Members of ${cluster.name}`}>
      <ClusterHead page="Members" />
      <Members scope={{ level: "cluster", id: cluster.id, name: cluster.name }} />
      <p className="second">
        A role here holds in the whole cluster.{" "}
        <Link className="link" {...paths.projects(cluster.name)}>
          Roles in projects
        </Link>{" "}
        hold in their namespaces.
      </p>
    </Page>
  );
}
