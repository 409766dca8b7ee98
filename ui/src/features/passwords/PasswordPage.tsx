/** The signed-in user's own password. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { sessionQuery } from "../../api/queries.ts";
import { paths } from "../../paths.ts";
import { buttonClass } from "../../ui/Button.tsx";
import { Page, PageHead } from "../../ui/Page.tsx";
import { PasswordForm } from "./PasswordForm.tsx";

export function PasswordPage() {
  const { data: user } = useQuery(sessionQuery);
  const username = user?.username ?? "";
  return (
    <Page title="Your password">
      <PageHead title="Your password" facts={username && `Of user ${username}`} />
      <PasswordForm
        username={username}
        wayOn={
          <Link className={buttonClass()} {...paths.clusters()}>
            All clusters
          </Link>
        }
      />
    </Page>
  );
}
