/** A cluster of real Kubernetes components with a node on which pods run, managed by a server. */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { agent, eventually, shell, xtask } from "./programs.ts";
import type { Visitor } from "./world.ts";

const AGENT_NAMESPACE = "cattle-system";

interface AgentPod {
  containers: {
    command?: string[];
    args?: string[];
    env?: { name: string; value?: string }[];
    volumeMounts?: { name: string }[];
  }[];
  serviceAccountName: string;
  volumes?: { name: string; secret?: { secretName: string } }[];
}

export class RealCluster {
  readonly #name: string;
  readonly #folder: string;
  #kubeconfig = "";
  #agent: ChildProcess | undefined;

  /** `folder`: for logs and the agent's files. */
  constructor(name: string, folder: string) {
    this.#name = name;
    this.#folder = join(folder, "real");
    mkdirSync(this.#folder, { recursive: true });
  }

  /**
   * `images`: archives that the node gets; `hasMetrics`: it serves metrics.k8s.io. Returns the
   * address of this machine for its pods.
   */
  async start(images: string[] = [], hasMetrics = false): Promise<string> {
    const given = images.map((image) => `--image ${image}`);
    const flags = [...given, ...(hasMetrics ? ["--metrics"] : [])].join(" ");
    const printed = await shell(`${xtask()} testbed up ${this.#name} --node ${flags}`, {});
    const path = printed.split("\n").find((line) => line.endsWith(".kubeconfig"));
    if (!path) throw new Error(`no kubeconfig: ${printed}`);
    this.#kubeconfig = path;
    await eventually("the node is ready", () =>
      this.run("kubectl wait node --all --for=condition=Ready --timeout=30s"),
    );
    const address = /this machine is ([\d.]+) for pods/.exec(printed)?.[1];
    if (!address) throw new Error(`no address: ${printed}`);
    return address;
  }

  /** Runs a line as the cluster's administrator. */
  run(line: string): Promise<string> {
    return shell(line, { KUBECONFIG: this.#kubeconfig, HOME: this.#folder });
  }

  /** Imports it under its name, with an agent as a process beside it. */
  async import(visitor: Visitor): Promise<void> {
    await this.apply(await visitor.importCommand(this.#name));
    await visitor.page.goto("/clusters");
    await visitor.row(this.#name).getByText("Active").waitFor();
  }

  /** Runs an import command, and the agent as a process beside the cluster. */
  async apply(command: string): Promise<void> {
    await this.run(command);
    const found = await this.run(
      `kubectl get deployment cattle-cluster-agent -n ${AGENT_NAMESPACE} -o jsonpath={.spec.template.spec}`,
    );
    const pod = JSON.parse(found) as AgentPod;
    const [container] = pod.containers;
    if (!container) throw new Error(found);
    const given = (container.env ?? []).map(({ name, value = "" }) => [name, value]);
    const { hostname, port } = new URL(await this.#config("{.clusters[0].cluster.server}"));
    const log = openSync(join(this.#folder, "agent.log"), "w");
    const words = [...(container.command ?? []).slice(1), ...(container.args ?? [])];
    this.#agent = spawn(agent(), words, {
      stdio: ["ignore", log, log],
      env: {
        ...Object.fromEntries(given),
        PATH: process.env.PATH,
        HOME: this.#folder,
        KUBERNETES_SERVICE_HOST: hostname,
        KUBERNETES_SERVICE_PORT: port,
        DROVER_SERVICEACCOUNT_DIR: await this.#account(pod.serviceAccountName),
        DROVER_CREDENTIALS_DIR: await this.#credentials(pod),
      },
    });
  }

  async end(): Promise<void> {
    this.#agent?.kill("SIGKILL");
    await shell(`${xtask()} testbed down ${this.#name}`, {});
  }

  /** A value of the kubeconfig. */
  #config(path: string): Promise<string> {
    return this.run(`kubectl config view --raw -o jsonpath='${path}'`);
  }

  /** What a pod has of its service account. */
  async #account(name: string): Promise<string> {
    const folder = join(this.#folder, "account");
    mkdirSync(folder);
    const token = await this.run(`kubectl create token -n ${AGENT_NAMESPACE} ${name}`);
    const ca = await this.#config("{.clusters[0].cluster.certificate-authority-data}");
    writeFileSync(join(folder, "token"), token.trim());
    writeFileSync(join(folder, "ca.crt"), Buffer.from(ca, "base64"));
    writeFileSync(join(folder, "namespace"), AGENT_NAMESPACE);
    return folder;
  }

  /** The files of the Secret that the agent's pod mounts. */
  async #credentials({ containers, volumes }: AgentPod): Promise<string> {
    const folder = join(this.#folder, "credentials");
    mkdirSync(folder);
    const mounted = containers[0]?.volumeMounts?.map(({ name }) => name) ?? [];
    const secrets = (volumes ?? []).flatMap(({ name, secret }) =>
      secret && mounted.includes(name) ? [secret.secretName] : [],
    );
    for (const secret of secrets) {
      const text = await this.run(
        `kubectl get secret ${secret} -n ${AGENT_NAMESPACE} -o jsonpath={.data}`,
      );
      for (const [name, value] of Object.entries(JSON.parse(text) as Record<string, string>)) {
        writeFileSync(join(folder, name), Buffer.from(value, "base64"));
      }
    }
    return folder;
  }
}
