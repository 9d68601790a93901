import { describe, expect, it } from "vitest";
import { FakeClock } from "../../core/testing/fake-clock.ts";
import { KubeletCpu, type MeasuredPod } from "./kubelet-cpu.ts";

const POD: MeasuredPod = { namespace: "ns", name: "p", hostIp: "10.0.0.1" };

const line = (container: string, seconds: number, atMs: number, pod = "p"): string =>
  `container_cpu_usage_seconds_total{container="${container}",namespace="ns",pod="${pod}"} ${seconds} ${atMs}`;

class World {
  readonly clock = new FakeClock();
  readonly failed: string[] = [];
  pods: MeasuredPod[] = [POD];
  answer: () => string = () => "";
  asked: string[] = [];
  readonly cpu = new KubeletCpu({
    pods: () => this.pods,
    read: async hostIp => {
      this.asked.push(hostIp);
      return this.answer();
    },
    clock: this.clock,
    onFailed: hostIp => this.failed.push(hostIp),
  });

  async look(...lines: string[]): Promise<void> {
    this.answer = () => ["# TYPE container_cpu_usage_seconds_total counter", ...lines, ""].join("\n");
    await this.cpu.look(new AbortController().signal);
  }
}

describe("CPU use by the kubelets' count", () => {
  it("is what the user's containers used between two looks, over that time", async () => {
    const world = new World();
    await world.look(line("user-container", 10, 1_000), line("side", 1, 1_002), line("queue-proxy", 5, 1_000));
    expect(world.cpu.usage("ns/p")).toBeUndefined();
    await world.look(line("user-container", 17.5, 11_000), line("side", 1.5, 11_002), line("queue-proxy", 95, 11_000));
    expect(world.cpu.usage("ns/p")).toBeCloseTo(0.8);
  });

  it("stays while the kubelet has no newer number, and not for ever", async () => {
    const world = new World();
    await world.look(line("c", 10, 1_000));
    await world.look(line("c", 12, 11_000));
    await world.look(line("c", 12, 11_000));
    expect(world.cpu.usage("ns/p")).toBeCloseTo(0.2);
    await world.clock.advance(30_001);
    expect(world.cpu.usage("ns/p")).toBeUndefined();
  });

  it("does not fall below zero when a container has started again", async () => {
    const world = new World();
    await world.look(line("c", 10, 1_000));
    await world.look(line("c", 12, 11_000));
    await world.look(line("c", 0.1, 21_000));
    expect(world.cpu.usage("ns/p")).toBeCloseTo(0.2);
    await world.look(line("c", 5.1, 31_000));
    expect(world.cpu.usage("ns/p")).toBeCloseTo(0.5);
  });

  it("survives a kubelet that does not answer once; gone pods are forgotten", async () => {
    const world = new World();
    await world.look(line("c", 10, 1_000));
    await world.look(line("c", 12, 11_000));
    world.answer = () => {
      throw new Error("refused");
    };
    await world.cpu.look(new AbortController().signal);
    expect([world.failed, world.cpu.usage("ns/p")]).toEqual([["10.0.0.1"], 0.2]);
    world.pods = [];
    await world.look(line("c", 14, 21_000));
    expect(world.cpu.usage("ns/p")).toBeUndefined();
    expect(world.asked.length).toBe(3);
  });
});
