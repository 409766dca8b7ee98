/** The signed-in user's logins and tokens: made, seen, ended. */

import { IconPlus, IconTrash } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { sentence } from "../../api/errors.ts";
import { clustersQuery } from "../../api/queries.ts";
import { type ApiToken, deleteToken, tokensQuery } from "../../api/tokens.ts";
import { count } from "../../lib/quantity.ts";
import { point } from "../../lib/time.ts";
import { Button } from "../../ui/Button.tsx";
import { DangerDialog } from "../../ui/DangerDialog.tsx";
import { useNarrow } from "../../ui/media.ts";
import { Notice, Skeleton } from "../../ui/Notice.tsx";
import { Page, PageHead } from "../../ui/Page.tsx";
import { State } from "../../ui/StateMark.tsx";
import table from "../../ui/Table.module.css";
import { Ago, useNow } from "../../ui/Time.tsx";
import { notify } from "../../ui/Toasts.tsx";
import { CreateTokenDialog } from "./CreateTokenDialog.tsx";
import { inOrder, scopeText, tokenTone, tokenWord } from "./model.ts";
import styles from "./Tokens.module.css";

const TICK_MS = 10_000;

export function TokensPage() {
  const tokens = useQuery(tokensQuery);
  const [creating, setCreating] = useState(false);
  const [ending, setEnding] = useState<ApiToken>();
  return (
    <Page title="Your tokens">
      <PageHead
        title="Your tokens"
        facts={tokens.data && count(tokens.data.length)}
        actions={
          <Button kind="primary" onClick={() => setCreating(true)}>
            <IconPlus size={16} stroke={1.5} />
            Create token
          </Button>
        }
      />
      <p className="second">
        A login, a kubeconfig and a program each have a token of yours. Whoever has one may do what
        it is for, until it expires or is ended here.
      </p>
      {tokens.isPending && <Skeleton rows={4} what="tokens" />}
      {tokens.isError && (
        <Notice tone="err" title="The tokens could not be read.">
          {sentence(tokens.error)}
        </Notice>
      )}
      {tokens.data && <TokenTable tokens={inOrder(tokens.data)} onEnd={setEnding} />}
      {creating && <CreateTokenDialog onClose={() => setCreating(false)} />}
      {ending && <EndDialog token={ending} onClose={() => setEnding(undefined)} />}
    </Page>
  );
}

interface TokenTableProps {
  tokens: readonly ApiToken[];
  onEnd(token: ApiToken): void;
}

function TokenTable({ tokens, onEnd }: TokenTableProps) {
  const narrow = useNarrow();
  const now = useNow(TICK_MS);
  const { data: clusters = [] } = useQuery(clustersQuery);
  const time = (text: string | null | undefined, none: string) => {
    const at = point(text);
    return at ? <Ago at={at} now={now} /> : none;
  };
  return (
    <div className={table.frame}>
      <table className={`${table.table} ${styles.table}`} data-narrow={narrow || undefined}>
        <caption className="hidden">Your tokens</caption>
        <thead>
          <tr>
            <th scope="col" className={styles.state}>
              State
            </th>
            <th scope="col">Description</th>
            {!narrow && (
              <>
                <th scope="col">For</th>
                <th scope="col" className={`${styles.time} ${table.right}`}>
                  Made
                </th>
                <th scope="col" className={`${styles.time} ${table.right}`}>
                  Last used
                </th>
                <th scope="col" className={`${styles.date} ${table.right}`}>
                  Expires
                </th>
              </>
            )}
            <th scope="col" className={styles.more}>
              <span className="hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {tokens.map((token) => (
            <tr key={token.id}>
              <td>
                <State tone={tokenTone(token)}>{tokenWord(token)}</State>
              </td>
              <td className="strong" title={token.id}>
                {token.description || token.id}
              </td>
              {!narrow && (
                <>
                  <td className={table.quiet}>{scopeText(token, clusters)}</td>
                  <td className={table.right}>{time(token.created, "—")}</td>
                  <td className={table.right}>{time(token.lastUsedAt, "—")}</td>
                  <td className={table.right}>{token.expiresAt?.slice(0, 10) || "never"}</td>
                </>
              )}
              <td className={table.right}>
                <Button
                  kind="ghost"
                  small
                  aria-label={`End ${token.description || token.id}…`}
                  disabledBecause={
                    token.current ? "This is the login of this browser: sign out." : undefined
                  }
                  onClick={() => onEnd(token)}
                >
                  <IconTrash size={16} stroke={1.5} />
                </Button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface EndDialogProps {
  token: ApiToken;
  onClose(): void;
}

function EndDialog({ token, onClose }: EndDialogProps) {
  const client = useQueryClient();
  const name = token.description || token.id;
  const end = useMutation({
    mutationFn: () => deleteToken(token.id),
    onSuccess: () => {
      notify("rem", `Ended ${name}`);
      void client.invalidateQueries({ queryKey: tokensQuery.queryKey });
      onClose();
    },
  });
  return (
    <DangerDialog
      title={`End ${name}?`}
      subtitle={token.id}
      verb="End"
      isPending={end.isPending}
      failed="It goes on."
      failure={end.error ? sentence(end.error) : undefined}
      onConfirm={() => end.mutate()}
      onClose={onClose}
    >
      <p className="second">What uses it is refused from now on, and its open streams end.</p>
    </DangerDialog>
  );
}
