/**
 * Requests to the server with the browser's login. Handles the cross-site check, knows no
 * resources.
 */

import { ApiError } from "./errors.ts";

/** Timeout of a response. */
const ANSWER_TIME_MAX_MS = 20_000;

/**
 * Sends one request and parses the JSON response; an empty response is `undefined`. `body` is sent
 * as JSON.
 *
 * Throws {@link ApiError} for every refusal, and if there is no response in time.
 */
export async function request<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  if (method !== "GET") headers["x-api-csrf"] = crossSiteToken();
  const response = await send(path, {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
    credentials: "same-origin",
    cache: "no-store",
    signal: AbortSignal.timeout(ANSWER_TIME_MAX_MS),
  });
  const text = await response.text();
  const content = parsed(text);
  if (!response.ok) throw refusal(response.status, content, text);
  return content as T;
}

/** Where the Kubernetes API of a cluster begins. */
export function clusterPath(clusterId: string): string {
  return `/k8s/clusters/${encodeURIComponent(clusterId)}`;
}

/** The URL of a WebSocket at a path of the server. */
export function socketUrl(path: string): string {
  return new URL(path, location.href.replace(/^http/, "ws")).href;
}

/** A change of what is at a path. */
export interface Change {
  method: "POST" | "PUT" | "PATCH";
  /** Media type of the body. */
  type: string;
  body: string;
}

/**
 * Reads a text in the format `type`; with `change`, after that change.
 *
 * Throws {@link ApiError} as {@link request} does.
 */
export async function requestText(path: string, type: string, change?: Change): Promise<string> {
  const written = change && { "content-type": change.type, "x-api-csrf": crossSiteToken() };
  const response = await send(path, {
    method: change?.method ?? "GET",
    headers: { accept: type, ...written },
    body: change?.body ?? null,
    credentials: "same-origin",
    cache: "no-store",
    signal: AbortSignal.timeout(ANSWER_TIME_MAX_MS),
  });
  const text = await response.text();
  if (!response.ok) throw refusal(response.status, parsed(text), text);
  return text;
}

/**
 * Reads a text while it is written, in pieces of any size, until it ends or `signal` aborts it.
 * There is no timeout: a text that is followed may be silent for long.
 *
 * Throws {@link ApiError} as {@link request} does, also when the connection breaks.
 */
export async function* requestPieces(path: string, signal: AbortSignal): AsyncGenerator<string> {
  const response = await send(path, { credentials: "same-origin", cache: "no-store", signal });
  if (!response.ok || !response.body) {
    const text = await response.text();
    throw refusal(response.status, parsed(text), text);
  }
  const pieces = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await pieces.read();
      if (done) return;
      yield value;
    }
  } catch {
    throw new ApiError(0, "Unreachable", "The connection broke.");
  } finally {
    void pieces.cancel().catch(() => undefined);
  }
}

async function send(path: string, options: RequestInit): Promise<Response> {
  try {
    return await fetch(path, options);
  } catch (error) {
    const late = error instanceof DOMException && error.name === "TimeoutError";
    const seconds = ANSWER_TIME_MAX_MS / 1000;
    throw new ApiError(
      0,
      "Unreachable",
      late ? `The server did not respond within ${seconds} s.` : "The server does not respond.",
    );
  }
}

/**
 * The value of the CSRF cookie of the login, which writes must repeat. Other hosts cannot set this
 * cookie.
 */
function crossSiteToken(): string {
  return cookie("__Host-CSRF") ?? "";
}

function cookie(name: string): string | undefined {
  const pairs = document.cookie.split(";").map((pair) => pair.trim().split("="));
  return pairs.find(([key]) => key === name)?.[1];
}

function parsed(text: string): unknown {
  if (!text) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

interface Refusal {
  code?: unknown;
  message?: unknown;
  detail?: unknown;
  fieldName?: unknown;
}

function refusal(status: number, content: unknown, text: string): ApiError {
  const refused: Refusal = typeof content === "object" && content !== null ? content : {};
  const code = typeof refused.code === "string" ? refused.code : "";
  const words = [refused.message, refused.detail].filter(
    (word) => typeof word === "string" && word,
  );
  const message = words.join(": ") || text.trim() || `the server responded with ${status}`;
  const field = typeof refused.fieldName === "string" ? refused.fieldName : undefined;
  const ended = status === 401 && typeof refused.detail === "string" ? refused.detail : undefined;
  return new ApiError(status, code, message, field, ended);
}
