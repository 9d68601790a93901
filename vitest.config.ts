import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          // Only to end a test that hangs; on a busy machine the default of 5 s would judge the machine.
          testTimeout: 60_000,
          hookTimeout: 60_000,
          include: ["{api,core,capabilities,dataplane,cli,hack,test}/**/*.test.ts"],
          exclude: ["test/e2e/**", "test/conformance/**", "**/node_modules/**"],
        },
      },
      {
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          globalSetup: ["test/e2e/global-setup.ts"],
          fileParallelism: false,
          // Two cores run the cluster and the load: one more try, which the report names, before a test counts as failed.
          retry: 1,
          testTimeout: 180_000,
          hookTimeout: 600_000,
        },
      },
    ],
  },
});
