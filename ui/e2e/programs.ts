/**
 * Drover's binary and the real programs beside it, as processes. A missing one fails with the
 * command that provides it.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { vi } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const TARGET = join(ROOT, "target");

/** Folder of the screenshots of every page. */
export const SCREENS = join(TARGET, "ui/screens");

function program(path: string, bring: string): string {
  if (!existsSync(path)) throw new Error(`there is no ${path}; run \`${bring}\``);
  return path;
}

export const drover = () =>
  program(process.env.DROVER_BIN ?? join(TARGET, "debug/drover"), "cargo build --bin drover");
export const agent = () =>
  program(join(TARGET, "debug/drover-agent"), "cargo build --bin drover-agent");
/** The folder with unpacked packages of Debian. */
export const packages = () => program(join(TARGET, "deps/packages"), "cargo xtask deps");
export const xtask = () => program(join(TARGET, "debug/xtask"), "cargo build --bin xtask");
export const goDriver = () =>
  program(join(TARGET, "deps/bin/kontainer-engine-driver-go"), "cargo xtask deps");
export const faultyDriver = () =>
  program(join(TARGET, "deps/bin/kontainer-engine-driver-faulty"), "cargo xtask deps");
export const kubectl = () => program(join(TARGET, "deps/bin/kubectl"), "cargo xtask deps");
export const chromium = () => program(join(TARGET, "deps/bin/chromium"), "cargo xtask deps");

/**
 * Polls until `attempt` succeeds; after the timeout it fails with the last error.
 *
 * There is no event to wait for: what is awaited is in other programs. `/readyz` is what a load
 * balancer polls, too; the line that a server prints when it is ready is for users, and its text
 * may change. A poll is a local request, and adds 50 ms at most.
 */
export async function eventually<T>(
  what: string,
  attempt: () => Promise<T> | T,
  timeoutMs = 30_000,
): Promise<T> {
  try {
    return await vi.waitFor(attempt, { timeout: timeoutMs, interval: 50 });
  } catch (error) {
    throw new Error(`not within ${timeoutMs} ms: ${what}`, { cause: error });
  }
}

/** A running `drover …` with a data folder of its own. */
export class Drover {
  readonly #name: string;
  readonly #folder: string;
  readonly #arguments: string[];
  #process: ChildProcess | undefined;
  #starts = 0;
  /** Where it listens and is reached; set before the first start. */
  host = "127.0.0.1";
  #port: number | undefined;

  /**
   * `folder`: stays the same over restarts. The port is free at the first start and stays, data or
   * not.
   */
  constructor(name: "server" | "sim", folder: string, flags: string[]) {
    this.#name = name;
    this.#folder = folder;
    this.#arguments = flags;
    mkdirSync(folder, { recursive: true });
  }

  get data(): string {
    return join(this.#folder, "data");
  }

  /** Starts it and waits until it is ready. */
  async start(environment: Record<string, string> = {}): Promise<string> {
    this.#starts += 1;
    this.#port ??= await restartablePort();
    const log = join(this.#folder, `${this.#name}-${this.#starts}.log`);
    const output = openSync(log, "w");
    const address = `${this.host}:${this.#port}`;
    const listen = ["--listen", address, "--data-dir", this.data];
    if (this.host !== "127.0.0.1") listen.push("--server-url", `https://${address}`);
    const child = spawn(drover(), [this.#name, ...listen, ...this.#arguments], {
      stdio: ["ignore", output, output],
      env: { ...process.env, HOME: this.#folder, DROVER_DIE_WITH_PARENT: "1", ...environment },
    });
    this.#process = child;
    await eventually(`drover ${this.#name} is ready`, async () => {
      if (child.exitCode !== null) throw new Error(readFileSync(log, "utf8").slice(-2000));
      // The certificate is the server's own; the requested data is public.
      const status = await insecure(`${this.url()}/readyz`);
      if (status !== 200) throw new Error(`/readyz says ${status}`);
    });
    return this.url();
  }

  url(): string {
    return JSON.parse(readFileSync(join(this.data, "server.json"), "utf8")).url;
  }

  /** Stops it without an end, like a machine that hangs: connections stay, nothing answers. */
  pause(): void {
    this.#process?.kill("SIGSTOP");
  }

  /** Lets it go on after {@link pause}. */
  resume(): void {
    this.#process?.kill("SIGCONT");
  }

  /** Kills it like a crash. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (!child || child.exitCode !== null) return;
    const ended = new Promise((end) => child.once("exit", end));
    child.kill("SIGKILL");
    await ended;
  }
}

/** A running provider of OpenID Connect without TLS, with some people. Every password is right. */
export class OidcProvider {
  readonly clientId = "drover";
  readonly clientSecret = "only-for-browser-tests";
  #process: ChildProcess | undefined;
  #issuer = "";

  /** Its name, and the URL below which everything of it is. */
  get issuer(): string {
    return this.#issuer;
  }

  /** Starts it; it sends browsers back to `redirect`. */
  async start(folder: string, redirect: string, people: Record<string, object>): Promise<void> {
    const path = join(TARGET, "deps/bin/oidc-provider");
    const port = await restartablePort();
    const file = join(folder, "provider.json");
    const client = { id: this.clientId, secret: this.clientSecret, redirect };
    writeFileSync(file, JSON.stringify({ port, client, people }));
    const output = openSync(join(folder, "provider.log"), "w");
    this.#process = spawn(program(path, "cargo xtask deps"), [file], {
      stdio: ["ignore", output, output],
    });
    this.#issuer = `http://127.0.0.1:${port}`;
    await eventually("the provider listens", () =>
      fetch(`${this.#issuer}/.well-known/openid-configuration`),
    );
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null) return;
    const ended = new Promise((end) => child.once("exit", end));
    child.kill("SIGKILL");
    await ended;
  }
}

/**
 * Below those that the kernel gives to connections of other programs (32768 and more). Each of the
 * processes that run tests at the same time has its own.
 */
const PORTS_PER_WORKER = 5_000;
const PORTS = {
  first: 20_000 + PORTS_PER_WORKER * (Number(process.env.VITEST_POOL_ID ?? 1) % 2),
  count: PORTS_PER_WORKER,
};
const PORT_ATTEMPTS_MAX = 100;

/** A free port that nobody else gets while a program that listens on it is started again. */
export async function restartablePort(): Promise<number> {
  for (let attempt = 0; attempt < PORT_ATTEMPTS_MAX; attempt += 1) {
    const port = PORTS.first + Math.floor(Math.random() * PORTS.count);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port from ${PORTS.first} on`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

/** The status of a GET, without verification of the certificate. */
function insecure(url: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = get(url, { rejectUnauthorized: false }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    request.on("error", reject);
  });
}

/** Runs a line in a shell, as pasted by a user; fails with its output. */
export async function shell(line: string, environment: Record<string, string>): Promise<string> {
  const path = `${join(TARGET, "deps/bin")}:${process.env.PATH}`;
  const child = spawn("bash", ["-o", "pipefail", "-c", line], {
    env: { ...process.env, ...environment, PATH: path },
  });
  let printed = "";
  child.stdout.on("data", (bytes) => {
    printed += bytes;
  });
  child.stderr.on("data", (bytes) => {
    printed += bytes;
  });
  const code = await new Promise((end) => child.once("close", end));
  if (code !== 0) throw new Error(`\`${line}\` ended with ${code}: ${printed}`);
  return printed;
}
