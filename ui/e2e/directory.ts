/** A real OpenLDAP server on loopback, with Ada, who is in the group `team`, and Bob. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, openSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { eventually, packages, restartablePort } from "./programs.ts";

const BASE = "dc=example,dc=org";

export class Slapd {
  readonly reader = `cn=reader,${BASE}`;
  readonly readerPassword = "reader-secret";
  readonly adaPassword = "a secret of Ada";
  readonly bobPassword = "a secret of Bob";
  readonly people = `ou=people,${BASE}`;
  readonly groups = `ou=groups,${BASE}`;
  #port = 0;
  #process: ChildProcess | undefined;

  get port(): number {
    return this.#port;
  }

  /** Starts it with its files in `folder`. */
  async start(folder: string): Promise<void> {
    const here = join(folder, "slapd");
    mkdirSync(join(here, "db"), { recursive: true });
    const root = packages();
    const configuration = join(here, "slapd.conf");
    const entries = join(here, "entries.ldif");
    writeFileSync(configuration, this.#configuration(root, join(here, "db")));
    writeFileSync(entries, this.#entries());
    const env = { LD_LIBRARY_PATH: join(root, "usr/lib", LIBRARIES[process.arch] ?? "") };
    const program = join(root, "usr/sbin/slapd");
    execFileSync(program, ["-T", "a", "-f", configuration, "-l", entries], { env });
    this.#port = await restartablePort();
    const log = openSync(join(here, "slapd.log"), "w");
    const url = `ldap://127.0.0.1:${this.#port}/`;
    this.#process = spawn(program, ["-d", "0", "-f", configuration, "-h", url], {
      stdio: ["ignore", log, log],
      env,
    });
    await eventually("slapd listens", () => connected(this.#port));
  }

  kill(): void {
    this.#process?.kill("SIGKILL");
  }

  #configuration(root: string, database: string): string {
    const schemas = ["core", "cosine", "inetorgperson"];
    return [
      ...schemas.map((name) => `include ${root}/etc/ldap/schema/${name}.schema`),
      `modulepath ${root}/usr/lib/ldap`,
      "moduleload back_mdb",
      "database mdb",
      `directory ${database}`,
      `suffix "${BASE}"`,
      `rootdn "cn=root,${BASE}"`,
      "access to attrs=userPassword by anonymous auth by * none",
      `access to * by dn.exact="${this.reader}" read by * none`,
      "",
    ].join("\n");
  }

  #entries(): string {
    const entry = (dn: string, fields: Record<string, string | string[]>) => {
      const lines = Object.entries(fields).flatMap(([name, values]) =>
        [values].flat().map((value) => `${name}: ${value}`),
      );
      return [`dn: ${dn}`, ...lines, ""].join("\n");
    };
    const unit = (dn: string, ou: string) => entry(dn, { objectClass: "organizationalUnit", ou });
    const person = (uid: string, cn: string, userPassword: string) =>
      entry(`uid=${uid},${this.people}`, {
        ...{ objectClass: "inetOrgPerson", uid, cn, sn: cn, userPassword },
      });
    return [
      entry(BASE, { objectClass: ["dcObject", "organization"], o: "Example", dc: "example" }),
      entry(this.reader, {
        objectClass: ["organizationalRole", "simpleSecurityObject"],
        cn: "reader",
        userPassword: this.readerPassword,
      }),
      unit(this.people, "people"),
      unit(this.groups, "groups"),
      person("ada", "Ada Lovelace", this.adaPassword),
      person("bob", "Bob Example", this.bobPassword),
      entry(`cn=team,${this.groups}`, {
        objectClass: "groupOfNames",
        cn: "team",
        member: `uid=ada,${this.people}`,
      }),
    ].join("\n");
  }
}

/** Where Debian has libraries. */
const LIBRARIES: Partial<Record<NodeJS.Architecture, string>> = {
  x64: "x86_64-linux-gnu",
  arm64: "aarch64-linux-gnu",
};

function connected(port: number): Promise<void> {
  return new Promise((done, fail) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      done();
    });
    socket.once("error", fail);
  });
}
