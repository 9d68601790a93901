import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FakeClock } from "../shared/testing/fake-clock.ts";
import { Breaker, QueueFullError, WaitTimeoutError } from "./breaker.ts";

const never = new AbortController().signal;
const make = (limit: number, queueDepth = 10, maxWaitMs = 1000) => {
  const clock = new FakeClock();
  return { clock, breaker: new Breaker({ limit, queueDepth, maxWaitMs }, clock) };
};

describe("Breaker", () => {
  it("lets as many in as there are places and serves the rest in order of arrival", async () => {
    const { breaker } = make(1);
    expect(breaker.tryEnter()).toBe(true);
    expect(breaker.tryEnter()).toBe(false);
    const order: string[] = [];
    const first = breaker.wait(never).then(() => order.push("first"));
    const second = breaker.wait(never).then(() => order.push("second"));
    expect([breaker.inside, breaker.waiting]).toEqual([1, 2]);
    breaker.release();
    await first;
    expect(order).toEqual(["first"]);
    breaker.release();
    await second;
    breaker.release();
    expect([breaker.inside, breaker.waiting, order]).toEqual([0, 0, ["first", "second"]]);
  });

  it("never refuses without a limit", () => {
    const { breaker } = make(0, 0);
    for (let i = 0; i < 1000; i++) expect(breaker.tryEnter()).toBe(true);
    expect(breaker.inside).toBe(1000);
  });

  it("refuses what comes to a full queue, with the numbers", async () => {
    const { breaker } = make(1, 1);
    breaker.tryEnter();
    void breaker.wait(never);
    await expect(breaker.wait(never)).rejects.toThrow(QueueFullError);
    await expect(breaker.wait(never)).rejects.toThrow("queue full: 1 requests wait for the app, limit 1");
  });

  it("lets go of who waits too long, and of who leaves", async () => {
    const { breaker, clock } = make(1, 10, 1000);
    breaker.tryEnter();
    const late = breaker.wait(never);
    const client = new AbortController();
    const gone = breaker.wait(client.signal);
    client.abort(new Error("client gone"));
    await expect(gone).rejects.toThrow("client gone");
    clock.advance(1000);
    await expect(late).rejects.toThrow(WaitTimeoutError);
    expect([breaker.waiting, clock.pending]).toEqual([0, 0]);
    breaker.release();
    expect(breaker.inside).toBe(0);
  });

  it("takes no place for a request that is gone already", async () => {
    const { breaker } = make(1);
    await expect(breaker.wait(AbortSignal.abort(new Error("gone")))).rejects.toThrow("gone");
    expect(breaker.waiting).toBe(0);
  });

  it("refuses a release that no place was taken for", () => {
    expect(() => make(1).breaker.release()).toThrow(RangeError);
  });

  it("holds its limit and wastes no place, whatever comes and goes", async () => {
    const events = fc.array(fc.constantFrom("come", "leave", "finish", "time"), { maxLength: 200 });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 0, max: 5 }),
        events,
        async (limit, depth, all) => {
          const { breaker, clock } = make(limit, depth, 100);
          const clients: AbortController[] = [];
          let inside = 0;
          for (const event of all) {
            if (event === "come") {
              if (breaker.tryEnter()) inside++;
              else {
                const client = new AbortController();
                clients.push(client);
                breaker.wait(client.signal).then(
                  () => inside++,
                  () => undefined,
                );
              }
            } else if (event === "leave") clients.shift()?.abort();
            else if (event === "time") clock.advance(60);
            else if (inside > 0) {
              inside--;
              breaker.release();
            }
            await Promise.resolve();
            expect(inside).toBe(breaker.inside);
            expect(breaker.inside).toBeLessThanOrEqual(limit);
            expect(breaker.waiting).toBeLessThanOrEqual(depth);
            if (breaker.waiting > 0) expect(breaker.inside).toBe(limit);
          }
        },
      ),
      { seed: 7, numRuns: 300 },
    );
  });
});
