/**
 * Requests to the server with the browser's login. Handles the cross-site check, knows no
 * resources.
 */

import { ApiError } from "./errors.ts";

/** Timeout of a response. */
const ANSWER_TIME_MAX_MS = 20_000;

/**
 * Sends one request and parses the JSON response; an empty response is `undefined`.
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

/**
 * Reads a text in the format `type`; with `body`, replaces what is there.
 *
 * Throws {@link ApiError} as {@link request} does.
 */
export async function requestText(path: string, type: string, body?: string): Promise<string> {
  const written = { "content-type": type, "x-api-csrf": crossSiteToken() };
  const response = await send(path, {
    method: body === undefined ? "GET" : "PUT",
    headers: { accept: type, ...(body === undefined ? {} : written) },
    body: body ?? null,
    credentials: "same-origin",
    cache: "no-store",
    signal: AbortSignal.timeout(ANSWER_TIME_MAX_MS),
  });
  const text = await response.text();
  if (!response.ok) throw refusal(response.status, parsed(text), text);
  return text;
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
