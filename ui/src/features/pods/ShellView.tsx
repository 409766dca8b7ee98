/** A shell in a container of a pod. Loaded when it is used. */

import { useEffect, useRef, useState } from "react";
import { ExecSocket } from "../../api/exec.ts";
import { execUrl, type PodKey } from "../../api/pods.ts";
import { Button } from "../../ui/Button.tsx";
import { State } from "../../ui/StateMark.tsx";
import { openTerminal } from "../../ui/terminal.ts";
import type { PodContainer } from "./model.ts";
import styles from "./Pods.module.css";

/** Tried in order: the first that the container has. */
const SHELLS = ["bash", "sh"] as const;

type ShellState =
  | { word: "connecting" | "open" }
  /** `reason`: why it failed, if it did. */
  | { word: "ended"; reason: string | undefined };

interface ShellViewProps {
  pod: PodKey;
  containers: readonly PodContainer[];
  /** The container of the address; nothing: the first that runs. */
  chosen: string | undefined;
  onChoose(container: string): void;
}

export default function ShellView({ pod, containers, chosen, onChoose }: ShellViewProps) {
  const running = containers.filter(({ isRunning }) => isRunning).map(({ name }) => name);
  const container = running.find((name) => name === chosen) ?? running[0];
  const place = useRef<HTMLDivElement>(null);
  const [state, setState] = useState<ShellState>({ word: "connecting" });
  const [attempt, setAttempt] = useState(0);
  const { clusterId, namespace, name } = pod;
  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt opens it anew.
  useEffect(() => {
    if (!place.current || !container) return;
    return openShell(place.current, { clusterId, namespace, name }, container, setState);
  }, [clusterId, namespace, name, container, attempt]);
  const word = { connecting: "Connecting", open: "Connected", ended: "Ended" }[state.word];
  const tone = { connecting: "run", open: "ok", ended: "done" } as const;
  return (
    <section className={styles.shell} aria-label="Shell">
      <div className={styles.bar}>
        <select
          className={styles.choice}
          aria-label="Container"
          value={container}
          onChange={(event) => onChoose(event.target.value)}
        >
          {running.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <span className={styles.fact} role="status">
          <State tone={state.word === "ended" && state.reason ? "err" : tone[state.word]}>
            {word}
          </State>
          {state.word === "ended" && state.reason && <span className="second">{state.reason}</span>}
        </span>
        <span className="grow" />
        {state.word === "ended" && (
          <Button small onClick={() => setAttempt(attempt + 1)}>
            Open again
          </Button>
        )}
        <span className="third small">Ctrl Shift Escape leaves the terminal</span>
      </div>
      <div ref={place} className={styles.terminal} />
    </section>
  );
}

/** Opens a shell in `place`; returns what ends it. */
function openShell(
  place: HTMLElement,
  pod: PodKey,
  container: string,
  onState: (state: ShellState) => void,
): () => void {
  const { terminal, dispose } = openTerminal(place);
  let socket: ExecSocket | undefined;
  const start = (index: number) => {
    const shell = SHELLS[index] ?? "sh";
    let silent = true;
    onState({ word: "connecting" });
    socket = new ExecSocket(execUrl(pod, container, [shell]), {
      onOpen: () => {
        onState({ word: "open" });
        socket?.resize(terminal.cols, terminal.rows);
      },
      onOutput: (bytes) => {
        silent = false;
        terminal.write(bytes);
      },
      onEnd: (reason) => {
        // A container without this shell ends it before it says anything.
        if (reason && silent && index + 1 < SHELLS.length) start(index + 1);
        else onState({ word: "ended", reason });
      },
    });
  };
  terminal.onData((text) => socket?.type(text));
  terminal.onResize(({ cols, rows }) => socket?.resize(cols, rows));
  terminal.attachCustomKeyEventHandler(({ key, ctrlKey, shiftKey }) => {
    if (key !== "Escape" || !ctrlKey || !shiftKey) return true;
    terminal.blur();
    document.getElementById("main")?.focus();
    return false;
  });
  start(0);
  terminal.focus();
  return () => {
    socket?.close();
    dispose();
  };
}
