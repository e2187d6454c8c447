// Tests of the built page in Chromium, against the program named by BACKSTORY and real runs.
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    environment: "node",
    include: ["browser/**/*.test.ts"],
    globalSetup: ["browser/stage.ts"],
    // One browser at a time, because the tests watch the requests of the page.
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 600_000,
  },
});
