/** The logs of a pod's containers: followed, searched, and downloaded whole. */

import { IconArrowDown, IconDownload } from "@tabler/icons-react";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { logPath, type PodKey } from "../../api/pods.ts";
import { ansiParts, plainText } from "../../lib/ansi.ts";
import { count } from "../../lib/quantity.ts";
import { clock, exact, point } from "../../lib/time.ts";
import { Button, buttonClass } from "../../ui/Button.tsx";
import { Check } from "../../ui/Check.tsx";
import { State } from "../../ui/StateMark.tsx";
import { type LogLine, type LogState, PodLogs } from "./logs.ts";
import type { PodContainer } from "./model.ts";
import styles from "./Pods.module.css";

/** Estimated height of a line, in pixels, as in the style sheet. */
const LINE_HEIGHT = 19;
const LINES_BEYOND = 30;
/** Nearer to the end than this, in pixels, counts as the end. */
const END_NEAR = 40;

const AGES: readonly { text: string; seconds: number | undefined }[] = [
  { text: "All", seconds: undefined },
  { text: "Last minute", seconds: 60 },
  { text: "Last 10 minutes", seconds: 600 },
  { text: "Last hour", seconds: 3_600 },
  { text: "Last day", seconds: 86_400 },
];

interface LogsViewProps {
  pod: PodKey;
  containers: readonly PodContainer[];
  /** The container of the address; nothing: the first. `*`: all. */
  chosen: string | undefined;
  onChoose(container: string): void;
}

export function LogsView({ pod, containers, chosen, onChoose }: LogsViewProps) {
  const names = containers.map(({ name }) => name);
  const container = chosen === ALL || names.includes(chosen ?? "") ? chosen : names[0];
  const [previous, setPrevious] = useState(false);
  const [age, setAge] = useState(0);
  const [search, setSearch] = useState("");
  const [times, setTimes] = useState(false);
  const shown = container === ALL ? names : names.filter((name) => name === container);
  const logs = useLogs(pod, shown, previous, AGES[age]?.seconds);
  const view = useSyncExternalStore(logs.subscribe, logs.view);
  const lines = useMemo(() => matching(view.lines, search), [view.lines, search]);
  const restarted = containers.some(({ name, restarts }) => shown.includes(name) && restarts > 0);
  return (
    <section className={styles.logs} aria-label="Logs">
      <search className={styles.bar}>
        <select
          className={styles.choice}
          aria-label="Container"
          value={container}
          onChange={(event) => onChoose(event.target.value)}
        >
          {names.map((name) => (
            <option key={name}>{name}</option>
          ))}
          {names.length > 1 && <option value={ALL}>All containers</option>}
        </select>
        <select
          className={styles.choice}
          aria-label="Since"
          value={age}
          onChange={(event) => setAge(Number(event.target.value))}
        >
          {AGES.map(({ text }, index) => (
            <option key={text} value={index}>
              {text}
            </option>
          ))}
        </select>
        <input
          className={styles.choice}
          aria-label="Search the log"
          placeholder="Lines that contain"
          value={search}
          spellCheck={false}
          onChange={(event) => setSearch(event.target.value)}
        />
        <Check checked={times} onChange={(event) => setTimes(event.target.checked)}>
          Times
        </Check>
        {(restarted || previous) && (
          <Check checked={previous} onChange={(event) => setPrevious(event.target.checked)}>
            Before the last restart
          </Check>
        )}
        <span className="grow" />
        {shown.map((name) => (
          <a
            key={name}
            className={buttonClass("plain", true)}
            href={logPath(pod, { container: name, previous, timestamps: true })}
            download={`${pod.namespace}-${pod.name}-${name}.log`}
          >
            <IconDownload size={16} stroke={1.5} aria-hidden="true" />
            {shown.length > 1 ? `Download ${name}` : "Download"}
          </a>
        ))}
      </search>
      <Lines lines={lines} times={times} names={shown.length > 1} search={search} />
      <div className={styles.facts}>
        {shown.map((name) => (
          <LogStateLine
            key={name}
            name={shown.length > 1 ? name : undefined}
            state={view.states.get(name)}
          />
        ))}
        <span className="grow" />
        <span className="second">
          {search ? `${count(lines.length)} of ` : ""}
          {count(view.lines.length)} lines
          {view.dropped > 0 && `, ${count(view.dropped)} older ones only in the download`}
        </span>
      </div>
    </section>
  );
}

/** Of the choice of all containers. */
const ALL = "*";

/** Follows the logs while the component is mounted; begins anew when the choice changes. */
function useLogs(
  { clusterId, namespace, name }: PodKey,
  containers: readonly string[],
  previous: boolean,
  since: number | undefined,
): PodLogs {
  const chosen = containers.join(",");
  const logs = useMemo(
    () =>
      new PodLogs(
        { clusterId, namespace, name },
        { containers: chosen ? chosen.split(",") : [], previous, since },
      ),
    [clusterId, namespace, name, chosen, previous, since],
  );
  useEffect(() => {
    logs.start();
    return () => logs.stop();
  }, [logs]);
  return logs;
}

function matching(lines: readonly LogLine[], search: string): readonly LogLine[] {
  if (!search) return lines;
  const part = search.toLowerCase();
  return lines.filter(({ text }) => plainText(text).toLowerCase().includes(part));
}

const STATES: Record<
  LogState["word"],
  { tone: React.ComponentProps<typeof State>["tone"]; text: string }
> = {
  reading: { tone: "run", text: "Reading" },
  following: { tone: "ok", text: "Following" },
  waiting: { tone: "wait", text: "Not started" },
  ended: { tone: "done", text: "Ended" },
  broken: { tone: "off", text: "Trying again" },
  failed: { tone: "err", text: "Not readable" },
};

interface LogStateLineProps {
  name: string | undefined;
  state: LogState | undefined;
}

function LogStateLine({ name, state = { word: "reading" } }: LogStateLineProps) {
  const { tone, text } = STATES[state.word];
  return (
    <span className={styles.fact} role="status">
      <State tone={tone}>{[name, text].filter(Boolean).join(": ")}</State>
      {state.reason && <span className="second">{state.reason}</span>}
    </span>
  );
}

interface LinesProps {
  lines: readonly LogLine[];
  times: boolean;
  /** Whether each line has the name of its container. */
  names: boolean;
  search: string;
}

/** Only the lines around the window are in the document; the end is kept in view while it is seen. */
function Lines({ lines, times, names, search }: LinesProps) {
  const frame = useRef<HTMLDivElement>(null);
  const [atEnd, setAtEnd] = useState(true);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => frame.current,
    estimateSize: () => LINE_HEIGHT,
    getItemKey: (index) => lines[index]?.key ?? index,
    overscan: LINES_BEYOND,
  });
  const newest = lines.at(-1)?.key;
  useEffect(() => {
    if (atEnd && newest !== undefined) virtual.scrollToIndex(virtual.options.count - 1);
  }, [atEnd, newest, virtual]);
  const items = virtual.getVirtualItems();
  const above = items[0]?.start ?? 0;
  const below = virtual.getTotalSize() - (items.at(-1)?.end ?? 0);
  return (
    <div className={styles.frame}>
      <div
        ref={frame}
        className={styles.lines}
        role="log"
        // New lines are not read out: there may be hundreds a second.
        aria-live="off"
        aria-label="Lines of the log"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard.
        tabIndex={0}
        onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) =>
          setAtEnd(scrollHeight - scrollTop - clientHeight < END_NEAR)
        }
      >
        <svg width="1" height={above} className={styles.gap} aria-hidden="true" />
        {items.map(({ index }) => {
          const line = lines[index];
          return (
            line && (
              <div
                key={line.key}
                ref={virtual.measureElement}
                data-index={index}
                className={styles.line}
              >
                {times && <Time at={line.at} />}
                {names && <span className={styles.source}>{line.container} </span>}
                <Text text={line.text} search={search} />
              </div>
            )
          );
        })}
        <svg width="1" height={Math.max(below, 0)} className={styles.gap} aria-hidden="true" />
      </div>
      {!atEnd && (
        <Button small className={styles.newest} onClick={() => setAtEnd(true)}>
          <IconArrowDown size={16} stroke={1.5} aria-hidden="true" />
          Newest lines
        </Button>
      )}
    </div>
  );
}

function Time({ at }: { at: string }) {
  const moment = point(at);
  return (
    <span className={styles.source} title={moment && exact(moment)}>
      {moment ? clock(moment) : "—"}{" "}
    </span>
  );
}

function Text({ text, search }: { text: string; search: string }) {
  return ansiParts(text).map(({ text, colour, bold }, index) => (
    <span
      // biome-ignore lint/suspicious/noArrayIndexKey: parts of one line, in order.
      key={index}
      data-colour={colour}
      data-bold={bold || undefined}
    >
      {marked(text, search)}
    </span>
  ));
}

/** The text with what is searched for marked. */
function marked(text: string, search: string): React.ReactNode {
  const at = search ? text.toLowerCase().indexOf(search.toLowerCase()) : -1;
  if (at < 0) return text;
  const end = at + search.length;
  return (
    <>
      {text.slice(0, at)}
      <mark>{text.slice(at, end)}</mark>
      {text.slice(end)}
    </>
  );
}
