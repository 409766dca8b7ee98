/** The start of the interface: the query cache, the router, and what happens when a login ends. */

// First, so that style sheets of components override it.
import "./ui/tokens.css";
import "./ui/base.css";

import { HeadlessMantineProvider } from "@mantine/core";
import { QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError, isUnauthenticated, loginEnd } from "./api/errors.ts";
import { sessionQuery } from "./api/queries.ts";
import { paths } from "./paths.ts";
import { makeRouter } from "./routes.tsx";

/** Retries of a read without a response. Refusals are not retried. */
const TRIES_MAX = 3;

const client: QueryClient = new QueryClient({
  queryCache: new QueryCache({
    onError: (error) => {
      // Until the session is known, the router's own check of it redirects to the login.
      const isChecked = client.getQueryData(sessionQuery.queryKey) !== undefined;
      if (isUnauthenticated(error) && isChecked) leave(loginEnd(error));
    },
  }),
  defaultOptions: {
    queries: {
      // Lists follow the change feed.
      staleTime: Number.POSITIVE_INFINITY,
      refetchOnWindowFocus: false,
      retry: (failures, error) =>
        error instanceof ApiError && error.isUnreachable && failures < TRIES_MAX,
    },
  },
});

const router = makeRouter(client);

let leaving = false;

/**
 * After the end of a login: redirects to the login page and from there back to the current page.
 * The first reported reason is used.
 */
function leave(why: string | undefined): void {
  const here = router.state.location;
  if (leaving || here.pathname === "/login") return;
  leaving = true;
  client.clear();
  void router.navigate(paths.login(here.href, why)).finally(() => {
    leaving = false;
  });
}

const place = document.getElementById("root");
if (!place) throw new Error("index.html has no element with the id root");
createRoot(place).render(
  <StrictMode>
    <HeadlessMantineProvider>
      <QueryClientProvider client={client}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </HeadlessMantineProvider>
  </StrictMode>,
);
