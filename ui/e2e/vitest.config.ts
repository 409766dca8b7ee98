import { defineConfig } from "vitest/config";

export default defineConfig({
  cacheDir: "../node_modules/.vite-e2e",
  test: {
    root: import.meta.dirname,
    include: ["*.e2e.ts"],
    environment: "node",
    // One world at a time: each has a server, a simulator and a browser.
    fileParallelism: false,
    testTimeout: 90_000,
    hookTimeout: 120_000,
  },
});
