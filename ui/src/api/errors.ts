/** Errors of requests, as one type. */

export class ApiError extends Error {
  override readonly name = "ApiError";

  /** HTTP status; 0 if there was no response. */
  readonly status: number;
  /** The server's error code, such as `InvalidFormat`. */
  readonly code: string;
  /** The invalid field, if there is one. */
  readonly field: string | undefined;
  /** Why the login that the request came with has ended, if it has. */
  readonly loginEnd: string | undefined;

  constructor(status: number, code: string, message: string, field?: string, loginEnd?: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.field = field;
    this.loginEnd = loginEnd;
  }

  /** Nobody is logged in, or the login ended. */
  get isUnauthenticated(): boolean {
    return this.status === 401;
  }
  get isForbidden(): boolean {
    return this.status === 403;
  }
  get isNotFound(): boolean {
    return this.status === 404;
  }
  /** The server was not reached: a network problem, or it is starting. */
  get isUnreachable(): boolean {
    return this.status === 0 || this.status === 503;
  }
}

export function isUnauthenticated(error: unknown): boolean {
  return error instanceof ApiError && error.isUnauthenticated;
}

/** Why the login has ended, from the server. */
export function loginEnd(error: unknown): string | undefined {
  return error instanceof ApiError ? error.loginEnd : undefined;
}

/** The sentence to show for an error of any kind. */
export function sentence(error: unknown): string {
  if (error instanceof ApiError && error.status === 0) return "The server does not respond.";
  if (error instanceof Error) return error.message;
  return String(error);
}
