/**
 * Follows the logs of containers: reads again from the last line when a connection breaks or a
 * container starts again, and keeps the newest lines.
 */

import { requestPieces } from "../../api/client.ts";
import { ApiError, sentence } from "../../api/errors.ts";
import { logPath, type PodKey } from "../../api/pods.ts";

/** Lines that are kept; older ones are only in the download. */
export const LINES_MAX = 10_000;
/** Lines that each container begins with. */
const FIRST_LINES = 1_000;
/** How long new lines are gathered before they are shown. */
const SHOW_EVERY_MS = 100;
/** Characters of a line that are shown. */
const LINE_LENGTH_MAX = 10_000;
const RETRY_DELAY_MIN_MS = 1_000;
const RETRY_DELAY_MAX_MS = 10_000;

export interface LogLine {
  /** Unique, and rises. */
  key: number;
  container: string;
  /** When it was written, by RFC 3339; empty if the cluster does not say. */
  at: string;
  text: string;
}

export interface LogChoice {
  containers: readonly string[];
  /** The logs before the last restart, which end. */
  previous: boolean;
  /** Lines that are at most so old, in seconds. */
  since: number | undefined;
}

/** What a log does. `broken` and `waiting` are tried again. */
export interface LogState {
  word: "reading" | "following" | "waiting" | "ended" | "broken" | "failed";
  /** Why, for those that are not well. */
  reason?: string;
}

export interface LogView {
  lines: readonly LogLine[];
  /** Older lines that are no longer kept. */
  dropped: number;
  states: ReadonlyMap<string, LogState>;
}

const NOTHING: LogView = { lines: [], dropped: 0, states: new Map() };

export class PodLogs {
  readonly #pod: PodKey;
  readonly #choice: LogChoice;
  readonly #listeners = new Set<() => void>();
  #stop = new AbortController();
  #view: LogView = NOTHING;
  #fresh: LogLine[] = [];
  #states = new Map<string, LogState>();
  #timer: number | undefined;
  #keys = 0;

  constructor(pod: PodKey, choice: LogChoice) {
    this.#pod = pod;
    this.#choice = choice;
  }

  /** The same object until something changes. */
  readonly view = (): LogView => this.#view;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Begins, or begins again after {@link PodLogs.stop}. */
  start(): void {
    this.#stop = new AbortController();
    for (const container of this.#choice.containers) void this.#follow(container);
  }

  stop(): void {
    this.#stop.abort();
    window.clearTimeout(this.#timer);
  }

  async #follow(container: string): Promise<void> {
    const { signal } = this.#stop;
    const place = new LogPlace();
    let delay = RETRY_DELAY_MIN_MS;
    this.#set(container, { word: "reading" });
    while (!signal.aborted) {
      const before = this.#keys;
      const next = await this.#read(container, place);
      if (signal.aborted) return;
      this.#set(container, next);
      if (next.word === "failed" || this.#choice.previous) return;
      delay = this.#keys > before ? RETRY_DELAY_MIN_MS : Math.min(delay * 2, RETRY_DELAY_MAX_MS);
      await pause(delay, signal);
    }
  }

  /** Reads until the log or its connection ends. */
  async #read(container: string, place: LogPlace): Promise<LogState> {
    const { previous, since } = this.#choice;
    const path = logPath(this.#pod, {
      container,
      previous,
      follow: !previous,
      timestamps: true,
      ...(place.at ? { sinceTime: place.at } : { tailLines: FIRST_LINES, sinceSeconds: since }),
    });
    let rest = "";
    place.begin();
    try {
      for await (const piece of requestPieces(path, this.#stop.signal)) {
        this.#set(container, { word: "following" });
        const lines = (rest + piece).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) this.#take(container, place, line);
      }
      if (rest) this.#take(container, place, rest);
      return { word: "ended" };
    } catch (error) {
      return stateAfter(error);
    }
  }

  #take(container: string, place: LogPlace, line: string): void {
    const { at, text } = splitLine(line);
    if (!place.isNew(at)) return;
    this.#keys += 1;
    const shown = text.slice(0, LINE_LENGTH_MAX);
    this.#fresh.push({ key: this.#keys, container, at, text: shown });
    this.#changed();
  }

  #set(container: string, state: LogState): void {
    const before = this.#states.get(container);
    if (before?.word === state.word && before.reason === state.reason) return;
    this.#states = new Map(this.#states).set(container, state);
    this.#changed();
  }

  #changed(): void {
    if (this.#stop.signal.aborted) return;
    this.#timer ??= window.setTimeout(() => this.#show(), SHOW_EVERY_MS);
  }

  #show(): void {
    this.#timer = undefined;
    const several = this.#choice.containers.length > 1;
    // Lines of several containers, by time; those of one are in order.
    const fresh = several ? this.#fresh.sort(byTime) : this.#fresh;
    this.#fresh = [];
    const all = [...this.#view.lines, ...fresh];
    const lines = all.slice(-LINES_MAX);
    const dropped = this.#view.dropped + all.length - lines.length;
    this.#view = { lines, dropped, states: this.#states };
    for (const listener of this.#listeners) listener();
  }
}

/** How far a log has been read: a log that is read again begins with the second of the last line. */
export class LogPlace {
  /** The time of the last line; empty before there is one. */
  at = "";
  /** Lines of that time so far. */
  #count = 0;
  #toSkip = 0;

  /** Begins a response. */
  begin(): void {
    this.#toSkip = this.#count;
  }

  /** Whether a line of that time has not been read before; then it counts as read. */
  isNew(at: string): boolean {
    if (!at) return this.#toSkip === 0;
    const order = compareTimes(at, this.at);
    if (order < 0) return false;
    if (order > 0) {
      this.at = at;
      this.#count = 1;
      this.#toSkip = 0;
      return true;
    }
    if (this.#toSkip > 0) {
      this.#toSkip -= 1;
      return false;
    }
    this.#count += 1;
    return true;
  }
}

const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)) ?/;

/** A line of a log with times. */
export function splitLine(line: string): { at: string; text: string } {
  const found = TIME.exec(line);
  return found ? { at: found[1] ?? "", text: line.slice(found[0].length) } : { at: "", text: line };
}

/** Orders times of one clock; parts of seconds may have any number of digits. */
function compareTimes(one: string, other: string): number {
  const [a, b] = [comparable(one), comparable(other)];
  return a < b ? -1 : a > b ? 1 : 0;
}

function comparable(at: string): string {
  const [, second = "", part = ""] = /^(.{19})(?:\.(\d+))?/.exec(at) ?? [];
  return second + part.padEnd(9, "0");
}

function byTime(one: LogLine, other: LogLine): number {
  return compareTimes(one.at, other.at);
}

function stateAfter(error: unknown): LogState {
  const reason = sentence(error);
  if (!(error instanceof ApiError)) return { word: "failed", reason };
  // A container that has not started yet.
  if (error.status === 400 && /waiting to start|ContainerCreating|PodInitializing/.test(reason)) {
    return { word: "waiting", reason };
  }
  const isFinal = error.status >= 400 && error.status < 500 && error.status !== 429;
  return { word: isFinal ? "failed" : "broken", reason };
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((end) => {
    const timer = setTimeout(end, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      end();
    });
  });
}
