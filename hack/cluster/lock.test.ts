import { describe, expect, it } from "vitest";
import { LockTimeoutError, withLock } from "./lock.ts";

const LONG_MS = 10_000;

describe.runIf(process.platform === "linux")("withLock", () => {
  const lockName = (): string => `test/${process.pid}/${crypto.randomUUID()}`;

  it("lets one task in at a time, and the next when it is done", async () => {
    const name = lockName();
    const order: string[] = [];
    const waited = Promise.withResolvers<void>();
    const first = withLock(name, { timeoutMs: LONG_MS }, async () => {
      order.push("first begins");
      await waited.promise;
      order.push("first ends");
    });
    const second = withLock(name, { timeoutMs: LONG_MS, onWait: () => waited.resolve() }, async () => {
      order.push("second");
    });
    await Promise.all([first, second]);
    expect(order).toEqual(["first begins", "first ends", "second"]);
  });

  it("is free again after a failure", async () => {
    const name = lockName();
    await expect(withLock(name, { timeoutMs: 0 }, () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
    await expect(withLock(name, { timeoutMs: 0 }, () => Promise.resolve(1))).resolves.toBe(1);
  });

  it("gives up after its time", async () => {
    const name = lockName();
    await withLock(name, { timeoutMs: 0 }, async () => {
      await expect(withLock(name, { timeoutMs: -1 }, () => Promise.resolve())).rejects.toThrow(LockTimeoutError);
    });
  });
});
