import { writeFile } from "node:fs/promises";
import process from "node:process";
import type { TestCase, TestModule } from "vitest/node";
import type { Reporter } from "vitest/reporters";

/** What a run of vitest came to. */
export interface TestReport {
  readonly passed: number;
  readonly failed: number;
  /** Tests that passed, but not at their first try, with what was wrong then. */
  readonly retried: readonly string[];
  /** Files by what they took, the longest first. */
  readonly files: readonly { readonly name: string; readonly seconds: number }[];
}

/** Writes the report as JSON to the file that FAIRWAY_TEST_REPORT names. */
export default class FileReporter implements Reporter {
  async onTestRunEnd(modules: readonly TestModule[]): Promise<void> {
    const tests = modules.flatMap(module => [...module.children.allTests()]);
    const count = (state: "passed" | "failed"): number => tests.filter(test => test.result().state === state).length;
    const isRetried = (test: TestCase): boolean =>
      test.result().state === "passed" && (test.diagnostic()?.retryCount ?? 0) > 0;
    const report: TestReport = {
      passed: count("passed"),
      failed: count("failed"),
      retried: tests.filter(isRetried).map(test => {
        const errors = (test.result().errors ?? []).map(({ message, stack }) => stack ?? message);
        return [`${test.module.relativeModuleId}: ${test.fullName}`, ...errors].join("\n");
      }),
      files: modules
        .map(module => ({ name: module.relativeModuleId, seconds: module.diagnostic().duration / 1000 }))
        .sort((a, b) => b.seconds - a.seconds),
    };
    await writeFile(process.env["FAIRWAY_TEST_REPORT"] ?? "test-report.json", JSON.stringify(report));
  }
}
