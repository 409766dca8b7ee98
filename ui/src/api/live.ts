/**
 * The change feed: one WebSocket that is opened again whenever it breaks.
 *
 * Says what came in and how fresh that is. Does not know what the resources mean: `feed.ts` puts them
 * into the query cache.
 */

/** First wait before opening again; doubles up to {@link RETRY_DELAY_MAX_MS}. */
const RETRY_DELAY_MIN_MS = 500;
const RETRY_DELAY_MAX_MS = 15_000;
/** The server says something at least every 5 s; after this silence the connection counts as dead. */
const SILENCE_MAX_MS = 12_000;
/** How often the silence is looked at. */
const LOOK_EVERY_MS = 1_000;

export interface ResourceEvent {
  name: "resource.create" | "resource.change" | "resource.remove";
  resource: { id: string; type: string };
}

export interface Freshness {
  /** `opening`: never open so far. `lost`: was open, or failed to open, and is tried again. */
  state: "opening" | "live" | "lost";
  /** When the last frame came. */
  heardAt: Date | undefined;
}

export interface LiveFeedOptions {
  url: string;
  onEvent(event: ResourceEvent): void;
  /** Open, for the first time or again: what was read before may have changed meanwhile. */
  onOpen(): void;
  /** Broken, or not to be opened. */
  onLost(): void;
}

export class LiveFeed {
  readonly #options: LiveFeedOptions;
  readonly #listeners = new Set<() => void>();
  #freshness: Freshness = { state: "opening", heardAt: undefined };
  #socket: WebSocket | undefined;
  #delay = RETRY_DELAY_MIN_MS;
  #retry: number | undefined;
  #look: number | undefined;

  constructor(options: LiveFeedOptions) {
    this.#options = options;
  }

  /** The same object until something changed. */
  readonly freshness = (): Freshness => this.#freshness;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  start(): void {
    this.#open();
    this.#look = window.setInterval(() => this.#checkSilence(), LOOK_EVERY_MS);
  }

  stop(): void {
    window.clearTimeout(this.#retry);
    window.clearInterval(this.#look);
    this.#drop();
  }

  #open(): void {
    const socket = new WebSocket(this.#options.url);
    this.#socket = socket;
    socket.onopen = () => {
      if (socket !== this.#socket) return;
      this.#delay = RETRY_DELAY_MIN_MS;
      this.#set({ state: "live", heardAt: new Date() });
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
    // Browsers complain of a socket that is closed before it was open.
    if (socket.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close();
    else socket.close();
  }

  #take(data: unknown): void {
    this.#set({ state: "live", heardAt: new Date() });
    const event = readFrame(data);
    if (event) this.#options.onEvent(event);
  }

  #lose(): void {
    this.#drop();
    this.#set({ state: "lost", heardAt: this.#freshness.heardAt });
    this.#options.onLost();
    // Jitter: many people lose the same server at once.
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

/** The event in a frame; `undefined` for pings and whatever else comes. */
export function readFrame(data: unknown): ResourceEvent | undefined {
  if (typeof data !== "string") return undefined;
  let frame: { name?: unknown; data?: unknown };
  try {
    frame = JSON.parse(data);
  } catch {
    return undefined;
  }
  const { name, data: resource } = frame;
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
  const url = new URL(path, window.location.href);
  url.protocol = url.protocol === "http:" ? "ws:" : "wss:";
  for (const type of resourceTypes) url.searchParams.append("resourceTypes", type);
  return url.href;
}
