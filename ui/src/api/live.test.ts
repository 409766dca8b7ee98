// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LiveFeed } from "./live.ts";

/** The part of a browser's socket that the feed uses, driven by the test. */
class Socket {
  static readonly CONNECTING = 0;
  static all: Socket[] = [];
  readonly readyState = 1;
  onopen: (() => void) | undefined;
  onclose: (() => void) | undefined;
  onmessage: ((message: { data: unknown }) => void) | undefined;
  closed = false;
  readonly sent: string[] = [];

  constructor() {
    Socket.all.push(this);
  }

  send(text: string): void {
    this.sent.push(text);
  }

  close(): void {
    this.closed = true;
  }
}

const onEvent = vi.fn();
const onOpen = vi.fn();
const onLost = vi.fn();
const newest = () => Socket.all.at(-1) as Socket;

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("WebSocket", Socket);
  Socket.all = [];
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function started(): LiveFeed {
  const feed = new LiveFeed({ url: "wss://h/v3/subscribe", onEvent, onOpen, onLost });
  feed.start();
  return feed;
}

test("a broken feed is opened again, later each time, and soon after it was open", () => {
  const feed = started();
  const waits: number[] = [];
  for (let failure = 0; failure < 8; failure += 1) {
    const before = Socket.all.length;
    newest().onclose?.();
    expect(feed.freshness().state).toBe("lost");
    const since = Date.now();
    while (Socket.all.length === before) vi.advanceTimersByTime(50);
    waits.push(Date.now() - since);
  }
  expect(waits[0]).toBeLessThan(1000);
  expect(Math.max(...waits)).toBeLessThanOrEqual(19_000);
  expect(waits[7]).toBeGreaterThan(10_000);
  newest().onopen?.();
  expect(feed.freshness().state).toBe("live");
  newest().onclose?.();
  vi.advanceTimersByTime(1000);
  expect(Socket.all).toHaveLength(10);
  feed.stop();
});

test("a silent feed counts as broken although it is not closed", () => {
  const feed = started();
  const socket = newest();
  socket.onopen?.();
  vi.advanceTimersByTime(10_000);
  socket.onmessage?.({ data: '{"name":"ping","data":{}}' });
  vi.advanceTimersByTime(10_000);
  expect(feed.freshness().state).toBe("live");
  vi.advanceTimersByTime(4_000);
  expect(feed.freshness().state).toBe("lost");
  expect(socket.closed).toBe(true);
  feed.stop();
});

test("a stopped feed stays closed, and later frames of its socket are ignored", () => {
  const feed = started();
  const socket = newest();
  feed.stop();
  socket.onmessage?.({ data: '{"name":"resource.change","data":{"id":"a","type":"cluster"}}' });
  socket.onclose?.();
  vi.advanceTimersByTime(60_000);
  expect(Socket.all).toHaveLength(1);
  expect(onEvent).not.toHaveBeenCalled();
});

test("a feed says what it follows, and is opened again when the server stops that", () => {
  const greeting = vi.fn(() => "follow pods");
  const feed = new LiveFeed({ url: "wss://h/v1/subscribe", greeting, onEvent, onOpen, onLost });
  feed.start();
  const first = newest();
  first.onopen?.();
  expect(first.sent).toEqual(["follow pods"]);
  first.onmessage?.({ data: JSON.stringify({ name: "resource.start" }) });
  expect(feed.freshness().state).toBe("live");
  first.onmessage?.({ data: JSON.stringify({ name: "resource.stop" }) });
  expect(feed.freshness().state).toBe("lost");
  vi.advanceTimersByTime(2_000);
  newest().onopen?.();
  expect(newest().sent).toEqual(["follow pods"]);
  expect(newest()).not.toBe(first);
  feed.stop();
});
