import { describe, expect, it } from "vitest";
import { FakeClock } from "../shared/testing/fake-clock.ts";
import { Drain } from "./drain.ts";

function make() {
  const clock = new FakeClock();
  const pod = { active: 0 };
  const drain = new Drain({ quietMs: 3000, maxMs: 60_000, active: () => pod.active }, clock);
  return { clock, pod, drain };
}

describe("Drain", () => {
  it("waits for the quiet time though nothing is here: the news of it needs time to spread", async () => {
    const { clock, drain } = make();
    clock.advance(10_000);
    drain.begin("SIGTERM");
    const over = drain.whenOver();
    clock.advance(2950);
    expect(drain.state.phase).toBe("draining");
    clock.advance(50);
    expect(await over).toEqual({ phase: "drained", complete: true });
    expect(await drain.whenOver()).toEqual({ phase: "drained", complete: true });
  });

  it("starts the quiet time anew with each request, and waits for those that are here", () => {
    const { clock, pod, drain } = make();
    drain.begin("SIGTERM");
    clock.advance(2000);
    drain.noteRequest();
    pod.active = 1;
    clock.advance(20_000);
    expect(drain.state.phase).toBe("draining");
    pod.active = 0;
    clock.advance(50);
    expect(drain.state.phase).toBe("drained");
  });

  it("ends at the limit with what is still here", () => {
    const { clock, pod, drain } = make();
    pod.active = 1;
    drain.begin("SIGTERM");
    clock.advance(59_950);
    expect(drain.state.phase).toBe("draining");
    clock.advance(50);
    expect(drain.state).toEqual({ phase: "drained", complete: false });
  });

  it("goes back to serving when only the user container is restarted", async () => {
    const { clock, drain } = make();
    drain.begin("preStop");
    const over = drain.whenOver();
    expect(drain.state.phase).toBe("draining");
    clock.advance(1000);
    expect(await over).toEqual({ phase: "serving" });
    expect(clock.pending).toBe(0);
  });

  it("is final when SIGTERM follows preStop, or comes first", async () => {
    for (const order of [["preStop", "SIGTERM"] as const, ["SIGTERM", "preStop"] as const]) {
      const { clock, drain } = make();
      for (const reason of order) {
        drain.begin(reason);
        clock.advance(500);
      }
      const over = drain.whenOver();
      clock.advance(5000);
      expect(await over).toEqual({ phase: "drained", complete: true });
    }
  });
});
