/** Every route and its precondition: all pages except the login need a login. */

import { type QueryClient, useQuery } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  Outlet,
  redirect,
  useLocation,
  useRouter,
} from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { isUnauthenticated, loginEnd } from "./api/errors.ts";
import { clustersQuery, mayBeSignedIn, sessionQuery } from "./api/queries.ts";
import { ErrorPage, NotFoundPage } from "./app/ErrorPage.tsx";
import { Shell } from "./app/Shell.tsx";
import { readAuditSearch } from "./features/audit/search.ts";
import { ClusterPage } from "./features/clusters/ClusterPage.tsx";
import { ConditionsPage } from "./features/clusters/ConditionsPage.tsx";
import { ListPage } from "./features/clusters/ListPage.tsx";
import { NodesPage } from "./features/clusters/NodesPage.tsx";
import { OverviewPage } from "./features/clusters/OverviewPage.tsx";
import { readSearch } from "./features/clusters/search.ts";
import { readKindSearch, readObjectSearch } from "./features/explorer/search.ts";
import { CodePage } from "./features/login/CodePage.tsx";
import { type LoginFailure, readFailure } from "./features/login/failures.ts";
import { LoginPage } from "./features/login/LoginPage.tsx";
import { FirstPasswordPage } from "./features/passwords/FirstPasswordPage.tsx";
import { PasswordPage } from "./features/passwords/PasswordPage.tsx";
import { paths } from "./paths.ts";

/** Pages that few people open first: each has its code in a file of its own. */
const AccessPage = lazy(() =>
  import("./features/access/AccessPage.tsx").then(({ AccessPage: page }) => ({ default: page })),
);
const DriversPage = lazy(() =>
  import("./features/drivers/DriversPage.tsx").then(({ DriversPage: page }) => ({
    default: page,
  })),
);
const KindPage = lazy(() =>
  import("./features/explorer/KindPage.tsx").then(({ KindPage: page }) => ({ default: page })),
);
const KindsPage = lazy(() =>
  import("./features/explorer/KindsPage.tsx").then(({ KindsPage: page }) => ({ default: page })),
);
const MembersPage = lazy(() =>
  import("./features/members/MembersPage.tsx").then(({ MembersPage: page }) => ({
    default: page,
  })),
);
const ObjectPage = lazy(() =>
  import("./features/explorer/ObjectPage.tsx").then(({ ObjectPage: page }) => ({ default: page })),
);
const ProjectPage = lazy(() =>
  import("./features/projects/ProjectPage.tsx").then(({ ProjectPage: page }) => ({
    default: page,
  })),
);
const ProjectsPage = lazy(() =>
  import("./features/projects/ProjectsPage.tsx").then(({ ProjectsPage: page }) => ({
    default: page,
  })),
);
const ProvidersPage = lazy(() =>
  import("./features/providers/ProvidersPage.tsx").then(({ ProvidersPage: page }) => ({
    default: page,
  })),
);
const SettingsPage = lazy(() =>
  import("./features/settings/SettingsPage.tsx").then(({ SettingsPage: page }) => ({
    default: page,
  })),
);
const RolesPage = lazy(() =>
  import("./features/users/RolesPage.tsx").then(({ RolesPage: page }) => ({ default: page })),
);
const GroupsPage = lazy(() =>
  import("./features/users/GroupsPage.tsx").then(({ GroupsPage: page }) => ({ default: page })),
);
const TokensPage = lazy(() =>
  import("./features/tokens/TokensPage.tsx").then(({ TokensPage: page }) => ({ default: page })),
);
const UsersPage = lazy(() =>
  import("./features/users/UsersPage.tsx").then(({ UsersPage: page }) => ({ default: page })),
);
const auditPages = () => import("./features/audit/AuditPage.tsx");
const AuditPage = lazy(() => auditPages().then(({ AuditPage: page }) => ({ default: page })));
const ClusterAuditPage = lazy(() =>
  auditPages().then(({ ClusterAuditPage: page }) => ({ default: page })),
);

const root = createRootRouteWithContext<{ client: QueryClient }>()({ component: Outlet });

const login = createRoute({
  getParentRoute: () => root,
  path: "/login",
  validateSearch: (raw: Record<string, unknown>): { to?: string; failed?: LoginFailure } => {
    const failed = readFailure(raw.failed);
    // Only paths of this interface: a crafted link must not redirect users to another site after
    // signing in.
    const isOwn = typeof raw.to === "string" && /^\/[^/\\]/.test(raw.to);
    return { ...(isOwn ? { to: String(raw.to) } : {}), ...(failed ? { failed } : {}) };
  },
  component: function Login() {
    const { to, failed } = login.useSearch();
    const router = useRouter();
    const loginEnd = useLocation({ select: ({ state }) => state.loginEnd });
    return (
      <LoginPage
        to={to}
        loginEnd={loginEnd}
        failed={failed}
        version={__VERSION__}
        onDone={() => (to ? router.history.push(to) : void router.navigate(paths.clusters()))}
      />
    );
  },
});

const code = createRoute({
  getParentRoute: () => root,
  path: "/login/code",
  component: function CodeOfLogin() {
    const hash = useLocation({ select: ({ hash }) => hash });
    return <CodePage hash={hash} version={__VERSION__} />;
  },
});

const signedIn = createRoute({
  getParentRoute: () => root,
  id: "signed-in",
  beforeLoad: async ({ context, location }) => {
    // Every page has the list of clusters, whose request need not wait for that of the user.
    const list = mayBeSignedIn() ? context.client.prefetchQuery(clustersQuery) : undefined;
    try {
      await context.client.ensureQueryData(sessionQuery);
    } catch (error) {
      if (!isUnauthenticated(error)) throw error;
      const to = location.href === "/" ? undefined : location.href;
      // The first refusal says why and deletes the cookie: it may be that of the list.
      await list;
      const refusal = context.client.getQueryState(clustersQuery.queryKey)?.error;
      throw redirect(paths.login(to, loginEnd(error) ?? loginEnd(refusal)));
    }
  },
  component: function SignedIn() {
    const { data: user } = useQuery(sessionQuery);
    // No other page is shown before a new password is set.
    if (user?.mustChangePassword) return <FirstPasswordPage user={user} />;
    return (
      <Shell>
        <Suspense>
          <Outlet />
        </Suspense>
      </Shell>
    );
  },
});

const home = createRoute({
  getParentRoute: () => signedIn,
  path: "/",
  beforeLoad: () => {
    throw redirect(paths.clusters());
  },
});

const clusters = createRoute({
  getParentRoute: () => signedIn,
  path: "/clusters",
  validateSearch: readSearch,
  component: function Clusters() {
    return <ListPage search={clusters.useSearch()} />;
  },
});

const audit = createRoute({
  getParentRoute: () => signedIn,
  path: "/audit",
  validateSearch: readAuditSearch,
  component: function Audit() {
    return <AuditPage search={audit.useSearch()} />;
  },
});

const roles = createRoute({
  getParentRoute: () => signedIn,
  path: "/users/roles",
  component: RolesPage,
});

const groups = createRoute({
  getParentRoute: () => signedIn,
  path: "/users/groups",
  component: GroupsPage,
});

const providers = createRoute({
  getParentRoute: () => signedIn,
  path: "/providers",
  component: ProvidersPage,
});

const drivers = createRoute({
  getParentRoute: () => signedIn,
  path: "/drivers",
  component: DriversPage,
});

const settings = createRoute({
  getParentRoute: () => signedIn,
  path: "/settings",
  component: SettingsPage,
});

const tokens = createRoute({
  getParentRoute: () => signedIn,
  path: "/tokens",
  component: TokensPage,
});

const users = createRoute({
  getParentRoute: () => signedIn,
  path: "/users",
  component: UsersPage,
});

const password = createRoute({
  getParentRoute: () => signedIn,
  path: "/password",
  component: PasswordPage,
});

/** All other addresses. A child of `signedIn`, so that it is shown inside the frame. */
const notFound = createRoute({
  getParentRoute: () => signedIn,
  path: "$",
  component: NotFoundPage,
});

const cluster = createRoute({
  getParentRoute: () => signedIn,
  path: "/c/$cluster",
  component: function Cluster() {
    return (
      <ClusterPage reference={cluster.useParams().cluster}>
        <Outlet />
      </ClusterPage>
    );
  },
});

const overview = createRoute({ getParentRoute: () => cluster, path: "/", component: OverviewPage });
const nodes = createRoute({ getParentRoute: () => cluster, path: "/nodes", component: NodesPage });
const conditions = createRoute({
  getParentRoute: () => cluster,
  path: "/conditions",
  component: ConditionsPage,
});

const kinds = createRoute({
  getParentRoute: () => cluster,
  path: "/kinds",
  component: KindsPage,
});

const kind = createRoute({
  getParentRoute: () => cluster,
  path: "/kinds/$type",
  validateSearch: readKindSearch,
  component: function Kind() {
    const { cluster, type } = kind.useParams();
    // What is selected of one kind is never meant of another.
    return <KindPage key={`${cluster} ${type}`} type={type} search={kind.useSearch()} />;
  },
});

const kindObject = createRoute({
  getParentRoute: () => cluster,
  path: "/objects/$type/$",
  validateSearch: readObjectSearch,
  component: function KindObject() {
    const { type, _splat: id } = kindObject.useParams();
    const search = kindObject.useSearch();
    return <ObjectPage key={`${type} ${id}`} type={type} id={id ?? ""} search={search} />;
  },
});

const projects = createRoute({
  getParentRoute: () => cluster,
  path: "/projects",
  component: ProjectsPage,
});

const members = createRoute({
  getParentRoute: () => cluster,
  path: "/members",
  component: MembersPage,
});

const project = createRoute({
  getParentRoute: () => cluster,
  path: "/projects/$project",
  component: function Project() {
    return <ProjectPage reference={project.useParams().project} />;
  },
});

const access = createRoute({
  getParentRoute: () => cluster,
  path: "/access",
  component: AccessPage,
});

const clusterAudit = createRoute({
  getParentRoute: () => cluster,
  path: "/audit",
  validateSearch: readAuditSearch,
  component: function ClusterAudit() {
    return <ClusterAuditPage search={clusterAudit.useSearch()} />;
  },
});

export function makeRouter(client: QueryClient) {
  return createRouter({
    routeTree: root.addChildren([
      login,
      code,
      signedIn.addChildren([
        home,
        clusters,
        audit,
        users,
        roles,
        groups,
        providers,
        drivers,
        settings,
        tokens,
        password,
        notFound,
        cluster.addChildren([
          overview,
          nodes,
          conditions,
          kinds,
          kind,
          kindObject,
          projects,
          project,
          members,
          access,
          clusterAudit,
        ]),
      ]),
    ]),
    context: { client },
    defaultErrorComponent: ErrorPage,
    defaultNotFoundComponent: NotFoundPage,
    defaultPendingMs: 200,
  });
}

declare module "@tanstack/react-router" {
  interface HistoryState {
    loginEnd?: string;
  }
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
