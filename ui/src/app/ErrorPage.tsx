/** The page for a broken page or an unknown address. */

import { type ErrorComponentProps, Link } from "@tanstack/react-router";
import { sentence } from "../api/errors.ts";
import { paths } from "../paths.ts";
import { Button, buttonClass } from "../ui/Button.tsx";
import { Blank } from "../ui/Notice.tsx";
import { Page, PageHead } from "../ui/Page.tsx";

export function ErrorPage({ error, reset }: ErrorComponentProps) {
  return (
    <Page title="Something broke">
      <PageHead title="This page broke" />
      <Blank
        title={sentence(error)}
        actions={
          <>
            <Button onClick={reset}>Try again</Button>
            <Link className={buttonClass()} {...paths.clusters()}>
              All clusters
            </Link>
          </>
        }
      >
        It is the interface's fault, not your cluster's. Reloading the page usually helps.
      </Blank>
    </Page>
  );
}

export function NotFoundPage() {
  return (
    <Page title="No such page">
      <PageHead title="No such page" />
      <Blank
        title="There is nothing at this address"
        actions={
          <Link className={buttonClass()} {...paths.clusters()}>
            All clusters
          </Link>
        }
      >
        The address may be mistyped, or from another version.
      </Blank>
    </Page>
  );
}
