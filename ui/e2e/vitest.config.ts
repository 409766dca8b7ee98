import { defineConfig } from "vitest/config";

export default defineConfig({
  cacheDir: "../node_modules/.vite-e2e",
  test: {
    root: import.meta.dirname,
    include: ["*.e2e.ts"],
    environment: "node",
    // Each world has a server, a simulator and a browser: one waits half of the time.
    maxWorkers: 2,
    testTimeout: 90_000,
    hookTimeout: 120_000,
  },
});
