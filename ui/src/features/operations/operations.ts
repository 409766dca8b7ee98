/**
 * What the page does for the user over a longer time: each operation has a log, goes on while other
 * pages are looked at, and can be cancelled. It ends with the page; what the server does by itself
 * has a state there instead.
 */

import { useSyncExternalStore } from "react";
import { sentence } from "../../api/errors.ts";

export interface OperationLine {
  at: Date;
  text: string;
  isFailure: boolean;
}

export interface Operation {
  id: number;
  title: string;
  /** Steps that have ended, well or not. */
  done: number;
  total: number;
  state: "running" | "done" | "failed" | "cancelled";
  lines: readonly OperationLine[];
}

/** For the work of an operation. */
export interface Progress {
  signal: AbortSignal;
  /** A step ended. */
  step(text: string): void;
  /** A step failed; the operation goes on. */
  failure(text: string): void;
}

/** The oldest ended ones are forgotten. */
const OPERATIONS_MAX = 20;
/** The oldest lines of a log are forgotten. */
const LINES_MAX = 1000;

let all: readonly Operation[] = [];
let lastId = 0;
const aborts = new Map<number, AbortController>();
const listeners = new Set<() => void>();

function set(next: readonly Operation[]): void {
  const over = next.length - OPERATIONS_MAX;
  const forgotten = next.filter(({ state }) => state !== "running").slice(0, Math.max(0, over));
  all = next.filter((operation) => !forgotten.includes(operation));
  for (const listener of listeners) listener();
}

function change(id: number, of: (operation: Operation) => Partial<Operation>): void {
  set(all.map((one) => (one.id === id ? { ...one, ...of(one) } : one)));
}

/** Begins an operation of so many steps. Returns how it ended, once it has; an error fails it. */
export async function operate(
  title: string,
  total: number,
  work: (progress: Progress) => Promise<void>,
): Promise<Operation["state"]> {
  lastId += 1;
  const id = lastId;
  const abort = new AbortController();
  aborts.set(id, abort);
  let failed = 0;
  const line = (text: string, isFailure: boolean) =>
    change(id, ({ lines, done }) => ({
      done: done + 1,
      lines: [...lines, { at: new Date(), text, isFailure }].slice(-LINES_MAX),
    }));
  set([...all, { id, title, done: 0, total, state: "running", lines: [] }]);
  const failure = (text: string) => {
    failed += 1;
    line(text, true);
  };
  try {
    await work({ signal: abort.signal, step: (text) => line(text, false), failure });
  } catch (error) {
    failure(sentence(error));
  }
  aborts.delete(id);
  const state = abort.signal.aborted ? "cancelled" : failed > 0 ? "failed" : "done";
  change(id, () => ({ state }));
  return state;
}

/** Ends an operation after the steps that are under way. */
export function cancelOperation(id: number): void {
  aborts.get(id)?.abort();
}

/** Forgets one that has ended. */
export function forgetOperation(id: number): void {
  set(all.filter((one) => one.id !== id || one.state === "running"));
}

export function useOperations(): readonly Operation[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => all,
  );
}

/** Does something for each of many things, some at a time, until it is cancelled. */
export async function forEach<T>(
  things: readonly T[],
  atOnce: number,
  signal: AbortSignal,
  work: (thing: T) => Promise<void>,
): Promise<void> {
  const todo = [...things];
  const worker = async () => {
    while (!signal.aborted) {
      const thing = todo.shift();
      if (thing === undefined) return;
      await work(thing);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
