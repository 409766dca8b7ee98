/** The drawer with the kubectl shells, below every page. Its terminals are loaded with it. */

import { IconChevronDown, IconPlus, IconX } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { ExecSocket } from "../../api/exec.ts";
import { clustersQuery, sessionQuery } from "../../api/queries.ts";
import { monogram } from "../../lib/names.ts";
import { Button, IconButton } from "../../ui/Button.tsx";
import { Monogram } from "../../ui/Tags.tsx";
import { openTerminal } from "../../ui/terminal.ts";
import styles from "./ShellDrawer.module.css";
import {
  addShell,
  closeShell,
  hideShells,
  type KubectlShell,
  selectShell,
  shellUrl,
  useShells,
} from "./shells.ts";
import { HEIGHT, useHeight } from "./useHeight.ts";

export default function ShellDrawer() {
  const { all, shown, isOpen } = useShells();
  const { data: clusters = [] } = useQuery(clustersQuery);
  const { data: user } = useQuery(sessionQuery);
  const drawer = useRef<HTMLElement>(null);
  const edge = useHeight(drawer);
  const current = all.find(({ id }) => id === shown);
  const cluster = clusters.find(({ id }) => id === current?.clusterId);
  return (
    <section ref={drawer} className={styles.drawer} aria-label="Shells" hidden={!isOpen}>
      <hr
        className={styles.edge}
        aria-label="Height of the shells"
        aria-orientation="horizontal"
        aria-valuenow={edge.height}
        aria-valuemin={HEIGHT.min}
        aria-valuemax={HEIGHT.max}
        tabIndex={0}
        {...edge.handlers}
      />
      <div className={styles.bar}>
        <ul className={styles.tabs}>
          {all.map((shell) => (
            <Tab key={shell.id} shell={shell} isShown={shell.id === shown} />
          ))}
        </ul>
        {cluster && (
          <IconButton label={`Another shell in ${cluster.name}`} onClick={() => addShell(cluster)}>
            <IconPlus size={16} stroke={1.5} />
          </IconButton>
        )}
        <span className="grow" />
        <span className="third small">
          as {user?.username ?? "you"}, ends after 30 min without input
        </span>
        <IconButton label="Hide the shells" onClick={hideShells}>
          <IconChevronDown size={16} stroke={1.5} />
        </IconButton>
      </div>
      {all.map((shell) => (
        <ShellPane key={shell.id} shell={shell} isShown={isOpen && shell.id === shown} />
      ))}
    </section>
  );
}

function Tab({ shell, isShown }: { shell: KubectlShell; isShown: boolean }) {
  const { id, clusterName } = shell;
  return (
    <li className={styles.tab} data-shown={isShown || undefined}>
      <button
        type="button"
        aria-current={isShown}
        className={styles.name}
        onClick={() => selectShell(id)}
      >
        <Monogram letters={monogram(clusterName)} />
        <span className="ellipsis">{clusterName}</span>
      </button>
      <IconButton
        label={`End the shell in ${clusterName}`}
        className={styles.end}
        onClick={() => closeShell(id)}
      >
        <IconX size={14} stroke={1.5} />
      </IconButton>
    </li>
  );
}

/** Why it failed, if it did. */
type Ended = { reason: string | undefined };

function ShellPane({ shell, isShown }: { shell: KubectlShell; isShown: boolean }) {
  const place = useRef<HTMLDivElement>(null);
  const focus = useRef<() => void>(undefined);
  const [ended, setEnded] = useState<Ended>();
  const [attempt, setAttempt] = useState(0);
  const { clusterId, clusterName } = shell;
  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt opens it anew.
  useEffect(() => {
    if (!place.current) return;
    setEnded(undefined);
    const opened = connect(place.current, clusterId, setEnded);
    focus.current = opened.focus;
    return opened.end;
  }, [clusterId, attempt]);
  useEffect(() => {
    if (isShown) focus.current?.();
  }, [isShown]);
  return (
    <div className={styles.pane} data-shown={isShown} hidden={!isShown}>
      {ended && (
        <div className={styles.ended} role="status">
          <span className="grow">
            {ended.reason ? sentence(ended.reason) : `The shell in ${clusterName} ended.`}
          </span>
          <Button small onClick={() => setAttempt(attempt + 1)}>
            Open again
          </Button>
        </div>
      )}
      <div ref={place} className={styles.terminal} />
    </div>
  );
}

function sentence(reason: string): string {
  const text = reason.charAt(0).toUpperCase() + reason.slice(1);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

/** Opens a shell in `place`. */
function connect(
  place: HTMLElement,
  clusterId: string,
  onEnd: (ended: Ended) => void,
): { focus(): void; end(): void } {
  const { terminal, dispose } = openTerminal(place);
  const socket = new ExecSocket(shellUrl(clusterId), {
    onOpen: () => socket.resize(terminal.cols, terminal.rows),
    onOutput: (bytes) => terminal.write(bytes),
    onEnd: (reason) => onEnd({ reason }),
  });
  terminal.onData((text) => socket.type(text));
  terminal.onResize(({ cols, rows }) => socket.resize(cols, rows));
  terminal.attachCustomKeyEventHandler(({ key, code, ctrlKey, shiftKey }) => {
    // The key that shows and hides the drawer works here, too.
    if (code === "Backquote" && ctrlKey) return false;
    if (key !== "Escape" || !ctrlKey || !shiftKey) return true;
    terminal.blur();
    document.getElementById("main")?.focus();
    return false;
  });
  terminal.focus();
  return {
    focus: () => terminal.focus(),
    end: () => {
      socket.close();
      dispose();
    },
  };
}
