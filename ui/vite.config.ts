/// <reference types="vitest/config" />
import { readFileSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import type { ClientRequest } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin, type ProxyOptions } from "vite";

/** Files that gain from compression; fonts are compressed already. */
const COMPRESSIBLE = /\.(css|html|js|svg)$/;
/** Below this the header costs more than the bytes it saves. */
const COMPRESSED_SIZE_MIN = 1024;

/** The version of the workspace: there is one for the whole product. */
function productVersion(): string {
  const manifest = readFileSync(new URL("../Cargo.toml", import.meta.url), "utf8");
  const version = /\[workspace\.package\][^[]*?\nversion = "([^"]+)"/.exec(manifest)?.[1];
  if (!version) throw new Error("Cargo.toml has no [workspace.package] version");
  return version;
}

/** Writes `x.br` and `x.gz` beside each file, so that the server compresses nothing. */
function precompressed(): Plugin {
  return {
    name: "precompressed",
    apply: "build",
    async writeBundle({ dir }) {
      const files = await readdir(dir ?? "dist", { recursive: true });
      await Promise.all(
        files
          .filter((file) => COMPRESSIBLE.test(file))
          .map((file) => compress(join(dir ?? "dist", file))),
      );
    },
  };
}

async function compress(path: string): Promise<void> {
  const bytes = await readFile(path);
  if (bytes.length < COMPRESSED_SIZE_MIN) return;
  const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
  await writeFile(`${path}.br`, await promisify(brotliCompress)(bytes, { params }));
  await writeFile(`${path}.gz`, await promisify(gzip)(bytes, { level: 9 }));
}

/** What is shipped of others and is no script: the fonts. */
const FONTS = ["@fontsource-variable/geist", "@fontsource-variable/jetbrains-mono"];
const LICENCES = "licences.txt";

/** Puts the licences of the fonts behind those of the scripts, which Vite has written. */
function fontLicences(): Plugin {
  return {
    name: "font-licences",
    apply: "build",
    async writeBundle({ dir }) {
      const path = join(dir ?? "dist", LICENCES);
      const parts = [await readFile(path, "utf8")];
      for (const font of FONTS) {
        parts.push(
          `## ${font}\n\n${await readFile(join("node_modules", font, "LICENSE"), "utf8")}`,
        );
      }
      await writeFile(path, parts.join("\n"));
    },
  };
}

/** The server takes a login from pages of its own origin only, and these stand for them. */
const fromTheServersOwnPage: NonNullable<ProxyOptions["configure"]> = (proxy) => {
  const rename = (request: ClientRequest) => {
    if (request.getHeader("origin")) request.setHeader("origin", server);
  };
  proxy.on("proxyReq", rename);
  proxy.on("proxyReqWs", rename);
};

/** The server to develop against, as `drover up` prints it. */
const server = process.env.DROVER_URL ?? "https://localhost:8443";

export default defineConfig({
  plugins: [react(), fontLicences(), precompressed()],
  define: { __VERSION__: JSON.stringify(productVersion()) },
  build: {
    target: "es2023",
    license: { fileName: LICENCES },
    cssTarget: "chrome123",
    // The page may load nothing but files of its own origin: no data URLs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // What every page needs, not compressed.
    chunkSizeWarningLimit: 700,
  },
  server: {
    proxy: Object.fromEntries(
      ["/v3", "/v3-public", "/k8s", "/api", "/docs"].map((path) => [
        path,
        { target: server, secure: false, ws: true, configure: fromTheServersOwnPage },
      ]),
    ),
  },
  test: {
    environment: "node",
    include: ["src/**/*.test.{ts,tsx}"],
    restoreMocks: true,
  },
});
