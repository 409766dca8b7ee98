/**
 * The environment of a browser test: a server, simulated clusters, a browser that records its
 * errors.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type Browser,
  type BrowserContext,
  chromium as launcher,
  type Page,
} from "playwright-core";
import { afterEach, expect } from "vitest";
import { writeEvidence } from "./evidence.ts";
import { chromium, Drover, eventually, kubectl, shell } from "./programs.ts";

export const PASSWORD = "only-for-browser-tests";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // Names that tests use for servers on this machine, and for pages that they serve themselves.
  "--host-resolver-rules=MAP *.corp.example 127.0.0.1, MAP *.test 127.0.0.1",
  // Otherwise only local pages may reach a server on this machine; real servers are not local.
  "--disable-features=LocalNetworkAccessChecks",
];

/** Timeout of a wait for an element of a page. */
const WAIT_TIMEOUT_MS = 30_000;

export type Theme = "light" | "dark";

export class World {
  readonly folder = mkdtempSync(join(tmpdir(), "drover-ui-"));
  readonly server = new Drover("server", join(this.folder, "server"), []);
  readonly sim: Drover;
  readonly #visitors = new Set<Visitor>();
  #browser: Browser | undefined;

  /**
   * `flags`: of the simulator. Must be created at the top of a file, because it watches for
   * failures of its tests.
   */
  constructor(flags: string[]) {
    this.sim = new Drover("sim", join(this.folder, "sim"), flags);
    kubectl();
    afterEach((context) => writeEvidence(this, this.#visitors, context));
  }

  /** `environment`: more settings of the server. */
  async start(environment: Record<string, string> = {}): Promise<void> {
    await Promise.all([this.startServer(environment), this.sim.start()]);
    this.#browser = await launcher.launch({ executablePath: chromium(), args: FLAGS });
  }

  async startServer(environment: Record<string, string> = {}): Promise<void> {
    await this.server.start({ DROVER_BOOTSTRAP_PASSWORD: PASSWORD, ...environment });
  }

  async end(): Promise<void> {
    await this.#browser?.close();
    await Promise.all([this.server.kill(), this.sim.kill()]);
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** A separate browser context, without a login. */
  async visitor(theme: Theme = "light"): Promise<Visitor> {
    if (!this.#browser) throw new Error("the world has not been started");
    const context = await this.#browser.newContext({
      baseURL: this.server.url(),
      ignoreHTTPSErrors: true,
      viewport: { width: 1440, height: 900 },
      colorScheme: theme,
      // Browsers prompt for the right to copy; the tests cannot respond.
      permissions: ["clipboard-read", "clipboard-write"],
    });
    context.setDefaultTimeout(WAIT_TIMEOUT_MS);
    const visitor = new Visitor(context, await context.newPage());
    this.#visitors.add(visitor);
    context.once("close", () => this.#visitors.delete(visitor));
    return visitor;
  }

  /** Runs a line against a simulated cluster, as its owner would. */
  run(line: string, kubeconfig = "admin.kubeconfig"): Promise<string> {
    return shell(line, { KUBECONFIG: join(this.sim.data, kubeconfig), HOME: this.folder });
  }
}

/** One user's browser. Records the errors of the browser. */
export class Visitor {
  readonly context: BrowserContext;
  readonly page: Page;
  readonly complaints: string[] = [];

  constructor(context: BrowserContext, page: Page) {
    this.context = context;
    this.page = page;
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") {
        this.complaints.push(`${message.type()}: ${message.text()}`);
      }
    });
    page.on("pageerror", (error) => this.complaints.push(`page error: ${error.message}`));
  }

  /** `origin`: where the server is opened; by default under its own URL. */
  async signIn(origin = "", name = "admin", password = PASSWORD): Promise<void> {
    const { page } = this;
    await page.goto(`${origin}/`);
    await page.getByLabel("User name").fill(name);
    await page.getByLabel("Password", { exact: true }).fill(password);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Sign in", level: 1 }).waitFor({ state: "detached" });
  }

  /** Sends a request to `/v3` like a page of this browser. Fails if it is refused. */
  api<T>(method: string, path: string, body?: object): Promise<T> {
    return this.page.evaluate(
      async ([method, path, body]) => {
        const csrf = document.cookie.replace(/.*CSRF=([^;]*).*/, "$1");
        const response = await fetch(path, {
          method,
          headers: { "content-type": "application/json", "x-api-csrf": csrf },
          body: body ? JSON.stringify(body) : null,
        });
        const text = await response.text();
        if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
        return (text ? JSON.parse(text) : undefined) as T;
      },
      [method, path, body] as const,
    );
  }

  /** Creates a cluster, and returns the command that imports it. */
  async importCommand(name: string, labels: Record<string, string> = {}): Promise<string> {
    const { id } = await this.api<{ id: string }>("POST", "/v3/clusters", { name, labels });
    return eventually(`a command for ${name}`, async () => {
      const path = `/v3/clusterregistrationtokens?clusterId=${id}`;
      const { data } = await this.api<{ data: { insecureCommand?: string }[] }>("GET", path);
      const command = data[0]?.insecureCommand;
      if (!command) throw new Error(JSON.stringify(data));
      return command;
    });
  }

  /** Creates a user, with a role on a cluster if one is given. */
  async makeUser(user: NewUser, role?: { cluster: string; role: string }): Promise<void> {
    const { id } = await this.api<{ id: string }>("POST", "/v3/users", user);
    if (!role) return;
    const path = `/v3/clusters?name=${role.cluster}`;
    const { data } = await this.api<{ data: { id: string }[] }>("GET", path);
    await this.api("POST", "/v3/clusterroletemplatebindings", {
      clusterId: data[0]?.id,
      roleTemplateId: role.role,
      userId: id,
    });
  }

  /** The row of a cluster in the list. */
  row(name: string) {
    return this.page.locator(`tr[data-cluster="${name}"]`);
  }

  /** Waits until the footer shows the text. */
  async freshness(word: string | RegExp): Promise<void> {
    await this.page.getByRole("contentinfo").getByText(word).first().waitFor();
  }

  /** Fails on what automatic accessibility checks call moderate, serious or critical. */
  async expectAccessible(what: string): Promise<void> {
    await this.settled();
    // Evaluated by the browser itself, so that the page's policy stays strict.
    await this.page.evaluate(await axeSource());
    const violations = await this.page.evaluate(async () => {
      const axe = (window as unknown as { axe: Axe }).axe;
      const { violations } = await axe.run(document, { resultTypes: ["violations"] });
      return violations
        .filter(({ impact }) => impact !== "minor")
        .map(
          ({ id, impact, nodes }) =>
            `${impact} ${id}: ${nodes.map(({ html }) => html).join(" | ")}`,
        );
    });
    expect(violations, what).toEqual([]);
  }

  /** Waits until all animations have ended: intermediate colours fail contrast checks. */
  async settled(): Promise<void> {
    await this.page.evaluate(async () => {
      // New elements begin to fade in with the next frame.
      await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
      const ends = document
        .getAnimations()
        .filter(({ effect }) => effect?.getComputedTiming().endTime !== Number.POSITIVE_INFINITY);
      await Promise.allSettled(ends.map(({ finished }) => finished));
    });
  }

  /** Fails if the browser logged errors. */
  expectQuiet(): void {
    expect(this.complaints).toEqual([]);
  }

  async leave(): Promise<void> {
    await this.context.close();
  }
}

export interface NewUser {
  username: string;
  password: string;
  name?: string;
  mustChangePassword?: boolean;
}

interface Axe {
  run(
    node: Document,
    options: object,
  ): Promise<{ violations: { id: string; impact: string; nodes: { html: string }[] }[] }>;
}

let axe: Promise<string> | undefined;

function axeSource(): Promise<string> {
  const path = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
  axe ??= readFile(path, "utf8");
  return axe;
}
