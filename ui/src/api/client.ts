/** Requests to the server, as the browser's login. Knows the cross-site check, not the resources. */

import { ApiError } from "./errors.ts";

/** Longest wait for an answer. */
const ANSWER_TIME_MAX_MS = 20_000;

/**
 * Sends one request and reads the JSON answer; an empty answer is `undefined`.
 *
 * Throws {@link ApiError} for every refusal and when there is no answer in time.
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
  const answer = parsed(text);
  if (!response.ok) throw refusal(response.status, answer, text);
  return answer as T;
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
      late ? `The server did not answer in ${seconds} s.` : "The server does not answer.",
    );
  }
}

/** What changing requests must repeat: the value that came with the login. Other hosts cannot set this cookie. */
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

function refusal(status: number, answer: unknown, text: string): ApiError {
  const said: Refusal = typeof answer === "object" && answer !== null ? answer : {};
  const code = typeof said.code === "string" ? said.code : "";
  const words = [said.message, said.detail].filter((word) => typeof word === "string" && word);
  const message = words.join(": ") || text.trim() || `the server answered ${status}`;
  const field = typeof said.fieldName === "string" ? said.fieldName : undefined;
  const ended = status === 401 && typeof said.detail === "string" ? said.detail : undefined;
  return new ApiError(status, code, message, field, ended);
}
