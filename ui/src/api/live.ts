/**
 * The change feed: one WebSocket that is reopened whenever it breaks.
 *
 * Reports events and their freshness. Does not interpret resources: `feed.ts` applies them to the
 * query cache.
 */

import { socketUrl } from "./client.ts";

/** First delay before reopening; doubles up to {@link RETRY_DELAY_MAX_MS}. */
const RETRY_DELAY_MIN_MS = 500;
const RETRY_DELAY_MAX_MS = 15_000;
/**
 * The server sends a frame at least every 5 s; after this silence the connection counts as dead.
 */
const SILENCE_MAX_MS = 12_000;
/** Interval of the check for silence. */
const SILENCE_CHECK_MS = 1_000;

export interface ResourceEvent {
  name: "resource.create" | "resource.change" | "resource.remove";
  resource: { id: string; type: string };
}

export interface Freshness {
  /** `opening`: never open so far. `lost`: was open, or failed to open, and is retried. */
  state: "opening" | "live" | "lost";
  /** Time of the last frame. */
  heardAt: Date | undefined;
}

export interface LiveFeedOptions {
  url: string;
  /** The message that is sent when it is open, if the server waits for one. */
  greeting?: () => string;
  onEvent(event: ResourceEvent): void;
  /** Called when it is open, initially or again: earlier data may be outdated. */
  onOpen(): void;
  /** Called when it is broken or cannot be opened. */
  onLost(): void;
}

export class LiveFeed {
  readonly #options: LiveFeedOptions;
  readonly #listeners = new Set<() => void>();
  #freshness: Freshness = { state: "opening", heardAt: undefined };
  #socket: WebSocket | undefined;
  #delay = RETRY_DELAY_MIN_MS;
  #retry: number | undefined;
  #silenceTimer: number | undefined;

  constructor(options: LiveFeedOptions) {
    this.#options = options;
  }

  /** The same object until something changes. */
  readonly freshness = (): Freshness => this.#freshness;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  start(): void {
    this.#open();
    this.#silenceTimer = window.setInterval(() => this.#checkSilence(), SILENCE_CHECK_MS);
  }

  stop(): void {
    window.clearTimeout(this.#retry);
    window.clearInterval(this.#silenceTimer);
    this.#drop();
  }

  #open(): void {
    const socket = new WebSocket(this.#options.url);
    this.#socket = socket;
    socket.onopen = () => {
      if (socket !== this.#socket) return;
      this.#delay = RETRY_DELAY_MIN_MS;
      this.#set({ state: "live", heardAt: new Date() });
      if (this.#options.greeting) socket.send(this.#options.greeting());
      this.#options.onOpen();
    };
    socket.onmessage = (message) => {
      if (socket === this.#socket) this.#take(message.data);
    };
    socket.onclose = () => {
      if (socket === this.#socket) this.#lose();
    };
  }

  #drop(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    if (!socket) return;
    // Browsers log an error for a socket that is closed before it is open.
    if (socket.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close();
    else socket.close();
  }

  #take(data: unknown): void {
    this.#set({ state: "live", heardAt: new Date() });
    const frame = frameOf(data);
    // What was followed is no longer: its version is too old, or the rights have changed.
    if (frame.name === "resource.stop") {
      this.#lose();
      return;
    }
    const event = eventOf(frame);
    if (event) this.#options.onEvent(event);
  }

  #lose(): void {
    this.#drop();
    this.#set({ state: "lost", heardAt: this.#freshness.heardAt });
    this.#options.onLost();
    // Jitter: many users lose the same server at once.
    const wait = this.#delay * (0.75 + Math.random() / 2);
    this.#delay = Math.min(this.#delay * 2, RETRY_DELAY_MAX_MS);
    this.#retry = window.setTimeout(() => this.#open(), wait);
  }

  #checkSilence(): void {
    const { state, heardAt } = this.#freshness;
    if (state === "live" && heardAt && Date.now() - heardAt.getTime() > SILENCE_MAX_MS) {
      this.#lose();
    }
  }

  #set(freshness: Freshness): void {
    this.#freshness = freshness;
    for (const listener of this.#listeners) listener();
  }
}

interface Frame {
  name?: unknown;
  data?: unknown;
}

function frameOf(text: unknown): Frame {
  if (typeof text !== "string") return {};
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

/** The event in a frame; `undefined` for pings and other frames. */
export function readFrame(text: unknown): ResourceEvent | undefined {
  return eventOf(frameOf(text));
}

function eventOf({ name, data: resource }: Frame): ResourceEvent | undefined {
  if (
    (name === "resource.create" || name === "resource.change" || name === "resource.remove") &&
    isResource(resource)
  ) {
    return { name, resource };
  }
  return undefined;
}

function isResource(value: unknown): value is { id: string; type: string } {
  if (typeof value !== "object" || value === null) return false;
  const { id, type } = value as Record<string, unknown>;
  return typeof id === "string" && typeof type === "string";
}

/** The feed's URL on the server this page is from. */
export function feedUrl(path: string, resourceTypes: readonly string[]): string {
  const query = new URLSearchParams(resourceTypes.map((type) => ["resourceTypes", type]));
  return socketUrl(resourceTypes.length > 0 ? `${path}?${query}` : path);
}
