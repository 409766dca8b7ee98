/** The page, at every address, for a user who must set a new password first. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { logout, sessionQuery } from "../../api/queries.ts";
import type { User } from "../../api/types.ts";
import { paths } from "../../paths.ts";
import { Button } from "../../ui/Button.tsx";
import { Logo } from "../../ui/Logo.tsx";
import styles from "./FirstPasswordPage.module.css";
import { PasswordForm } from "./PasswordForm.tsx";

export function FirstPasswordPage({ user }: { user: User }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const leave = useMutation({
    mutationFn: () => logout(client),
    onSuccess: () => void navigate(paths.login()),
  });
  useEffect(() => {
    document.title = "Set a new password · Drover";
  }, []);
  return (
    <div className={styles.page}>
      <header className={styles.head}>
        <Logo size={22} />
        <span className="grow strong">Drover</span>
        <Button small onClick={() => leave.mutate()}>
          Sign out
        </Button>
      </header>
      <main className={styles.main}>
        <h1>Set a new password</h1>
        <p className="second">
          The creator of user {user.username} requires a password that only you know.
        </p>
        <PasswordForm
          username={user.username ?? ""}
          wayOn={
            <Button
              kind="primary"
              onClick={() => void client.invalidateQueries({ queryKey: sessionQuery.queryKey })}
            >
              Go on
            </Button>
          }
        />
      </main>
    </div>
  );
}
