import { describe, expect, it } from "vitest";
import { FakeClock } from "../shared/testing/fake-clock.ts";
import type { ReadinessProbe } from "./config.ts";
import { Readiness } from "./readiness.ts";

const probe: ReadinessProbe = {
  check: { kind: "http", host: "127.0.0.1", port: 1, path: "/", tls: false, headers: {} },
  initialDelayMs: 0,
  timeoutMs: 100,
  successThreshold: 1,
  periodMs: 0,
};

/** An app whose answer the test sets. */
function make(changes: Partial<ReadinessProbe> = {}) {
  const clock = new FakeClock();
  const app = { problem: "refused" as string | undefined, looks: 0, timeouts: [] as number[] };
  const readiness = new Readiness({ probes: [{ ...probe, ...changes }], holdMs: 800 }, clock, () => timeoutMs => {
    app.looks++;
    app.timeouts.push(timeoutMs);
    return Promise.resolve(app.problem);
  });
  const advance = async (ms: number): Promise<void> => {
    await new Promise(setImmediate);
    for (let passed = 0; passed < ms; passed += 5) {
      clock.advance(5);
      await new Promise(setImmediate);
    }
  };
  return { clock, app, readiness, advance };
}

describe("Readiness", () => {
  it("looks every 25 ms while the app starts, and tells who waits at once", async () => {
    const { app, readiness, advance } = make();
    let startedAfterMs: number | undefined;
    readiness.onStarted = afterMs => (startedAfterMs = afterMs);
    readiness.start();
    await advance(100);
    expect(app.looks).toBe(5);
    expect(readiness.state).toEqual({ phase: "starting", problem: "refused" });
    const asked = readiness.ask();
    app.problem = undefined;
    await advance(25);
    expect(await asked).toBeUndefined();
    expect([readiness.state.phase, startedAfterMs]).toEqual(["started", 125]);
    await advance(200);
    expect(app.looks).toBe(6);
  });

  it("looks at a port alone every 5 ms at first", async () => {
    const { app, readiness, advance } = make({ check: { kind: "tcp", host: "127.0.0.1", port: 1 } });
    readiness.start();
    await advance(2_000);
    expect(app.looks).toBe(401);
    await advance(100);
    expect(app.looks).toBe(405);
    readiness.stop();
  });

  it("does not take a port that is open for a moment for an app", async () => {
    const { app, readiness, advance } = make({ check: { kind: "tcp", host: "127.0.0.1", port: 1 } });
    readiness.start();
    await advance(50);
    app.problem = undefined;
    await advance(5);
    app.problem = "refused";
    await advance(50);
    expect(readiness.state.phase).toBe("starting");
    app.problem = undefined;
    await advance(10);
    expect(readiness.state.phase).toBe("started");
  });

  it("answers no later than the hold time", async () => {
    const { readiness, advance } = make();
    readiness.start();
    const asked = readiness.ask();
    await advance(800);
    expect(await asked).toBe("refused");
  });

  it("looks anew for who asks after the start, once for all who ask meanwhile", async () => {
    const { app, readiness, advance } = make();
    app.problem = undefined;
    readiness.start();
    await advance(25);
    app.problem = "status 500";
    const looks = app.looks;
    expect(await Promise.all([readiness.ask(), readiness.ask()])).toEqual(["status 500", "status 500"]);
    expect(app.looks).toBe(looks + 1);
    expect(app.timeouts.at(-1)).toBe(800);
    app.problem = undefined;
    expect(await readiness.ask()).toBeUndefined();
  });

  it("looks at a started app no more often than its probe says, whoever asks meanwhile", async () => {
    const { app, readiness, advance } = make({ periodMs: 10_000 });
    app.problem = undefined;
    readiness.start();
    await advance(25);
    app.problem = "status 500";
    const looks = app.looks;
    for (let second = 0; second < 9; second++) {
      await advance(1_000);
      expect(await readiness.ask()).toBeUndefined();
    }
    expect(app.looks).toBe(looks);
    await advance(1_000);
    expect(await readiness.ask()).toBe("status 500");
    expect(app.looks).toBe(looks + 1);
  });

  it("needs as many successes in a row as the probe says", async () => {
    const { app, readiness, advance } = make({ successThreshold: 3 });
    app.problem = undefined;
    readiness.start();
    await advance(25);
    app.problem = "refused";
    await advance(25);
    app.problem = undefined;
    await advance(50);
    expect(readiness.state.phase).toBe("starting");
    await advance(25);
    expect(readiness.state.phase).toBe("started");
  });

  it("does not look before the initial delay is over", async () => {
    const { app, readiness, advance } = make({ initialDelayMs: 1000 });
    readiness.start();
    await advance(975);
    expect(app.looks).toBe(0);
    await advance(25);
    expect(app.looks).toBe(1);
  });

  it("lets go of who waits when it is stopped", async () => {
    const { clock, readiness } = make();
    readiness.start();
    const asked = readiness.ask();
    readiness.stop();
    expect(await asked).toBeDefined();
    await new Promise(setImmediate);
    expect(clock.pending).toBe(0);
  });
});
