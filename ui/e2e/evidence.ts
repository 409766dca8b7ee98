/**
 * The evidence of a failed test: logs of server and simulator, a screenshot of every open page with
 * the browser's errors, the objects of the management API. The test runner names the folder.
 */

import { copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "vitest";
import { shell } from "./programs.ts";
import type { Visitor, World } from "./world.ts";

/** Prefix of the folder of every failed test; without it nothing is written. */
const PREFIX = process.env.DROVER_TEST_EVIDENCE;
/** Timeout of a request to a server that hangs. */
const OBJECTS_TIME_MAX_S = 20;

declare module "vitest" {
  interface TaskMeta {
    /**
     * The guarantee of the test: durability, consistency, revocation, rights, secrecy. It gets no
     * second try.
     */
    guarantee?: string;
  }
}

/** Writes the evidence of a test that has failed. */
export async function writeEvidence(
  world: World,
  visitors: Iterable<Visitor>,
  { task }: TestContext,
): Promise<void> {
  if (!PREFIX || task.result?.state !== "fail") return;
  const folder = `${PREFIX}${testName(task).replaceAll("/", "-")}`;
  mkdirSync(folder, { recursive: true });
  for (const part of ["server", "sim"]) {
    const logs = join(world.folder, part);
    for (const log of existsSync(logs) ? readdirSync(logs) : []) {
      if (log.endsWith(".log")) copyFileSync(join(logs, log), join(folder, log));
    }
  }
  let number = 0;
  for (const visitor of visitors) {
    number += 1;
    const complaints = [visitor.page.url(), ...visitor.complaints].join("\n");
    writeFileSync(join(folder, `browser-${number}.log`), `${complaints}\n`);
    // A closed or crashed page has no screenshot.
    await visitor.page.screenshot({ path: join(folder, `page-${number}.png`) }).catch(() => {});
  }
  writeFileSync(join(folder, "objects.json"), await objects(world));
}

/** The name in the runner: the beginning of the file name, then the names of groups and test. */
function testName(task: TestContext["task"]): string {
  const names = [task.name];
  for (let suite = task.suite; suite; suite = suite.suite) names.unshift(suite.name);
  const file = task.file.filepath.split("/").at(-1)?.split(".")[0];
  return `${file}::${names.filter((name) => name !== "").join(" ")}`;
}

function objects(world: World): Promise<string> {
  const kinds = "kubectl api-resources --api-group=management.cattle.io --verbs=list -o name";
  const line = `timeout ${OBJECTS_TIME_MAX_S} kubectl get "$(${kinds} | paste -sd, -)" -A -o json`;
  const environment = {
    KUBECONFIG: join(world.server.data, "admin.kubeconfig"),
    HOME: world.folder,
  };
  return shell(line, environment).catch((error: Error) => `${error.message}\n`);
}
