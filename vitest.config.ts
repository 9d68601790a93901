import { defineConfig } from "vitest/config";

/** See test/e2e/README.md: these change what others need, or measure what others would disturb. */
const ALONE = ["configuration", "default-objects", "flow-control", "simulation"].map(
  name => `test/e2e/${name}.test.ts`,
);

const e2e = {
  globalSetup: ["test/e2e/global-setup.ts"],
  // Two cores run the cluster and the load: one more try, which the report names, before a test counts as failed.
  retry: 1,
  testTimeout: 180_000,
  hookTimeout: 600_000,
};

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
          maxWorkers: "100%",
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...e2e,
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          exclude: ALONE,
          // They wait for Kubernetes and for windows to end much more than they compute.
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...e2e,
          name: "e2e-alone",
          include: ALONE,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
