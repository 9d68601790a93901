import { describe, expect, it } from "vitest";
import type { SimulationResult } from "../../core/simulation/result.ts";
import { runFairway } from "../testing/fake-context.ts";

const SERVICE = `
apiVersion: serving.knative.dev/v1
kind: Service
metadata:
  name: hello
spec:
  template:
    metadata:
      annotations:
        autoscaling.knative.dev/max-scale: "4"
        autoscaling.knative.dev/window: 20s
    spec:
      containerConcurrency: 2
      containers: [{ image: example.com/hello }]
`;
const files = { "hello.yaml": SERVICE, "trace.csv": "time,service_time\n1,0.2\n1,0.2\n1,0.2\n2,0.2\n" };
const SHORT = ["--duration", "20s", "--tail", "60s", "--rps", "5", "--service-time", "200ms"];

const resultsOf = (stdout: string): SimulationResult[] =>
  (JSON.parse(stdout) as { results: SimulationResult[] }).results;

describe("fairway simulate", () => {
  it("compares policies on the same requests, the same by the same seed", async () => {
    const argv = ["simulate", "-f", "hello.yaml", ...SHORT, "-o", "json", "--policy", "kpa", "--policy", "manual:3"];
    const first = await runFairway(argv, { files });
    expect(first).toMatchObject({ exitCode: 0, stderr: "" });
    const [kpa, manual] = resultsOf(first.stdout);
    expect(kpa).toMatchObject({ name: "kpa", seed: 1, horizonMs: 80_000 });
    expect(manual!.requests).toEqual({ ...kpa!.requests });
    expect(manual!.pods).toMatchObject({ most: 3, started: 0, podSeconds: 240 });
    expect(kpa!.pods.most).toBeLessThanOrEqual(4);
    expect(kpa!.timeline.at(-1)!.readyPods).toBe(0);
    expect((await runFairway(argv, { files })).stdout).toBe(first.stdout);
    expect((await runFairway([...argv, "--seed", "2"], { files })).stdout).not.toBe(first.stdout);
    const [command, , file, ...rest] = argv;
    expect((await runFairway([command!, file!, ...rest], { files })).stdout).toBe(first.stdout);
  });

  it("takes the policy of the service's class and what the command line changes", async () => {
    const argv = ["simulate", "-f", "hello.yaml", ...SHORT, "-o", "json"];
    const change = ["--annotation", "autoscaling.knative.dev/class=cloudrun.autoscaling.fairway.dev"];
    expect(resultsOf((await runFairway([...argv, ...change], { files })).stdout)[0]!.name).toBe("cloudrun");
    const min = ["--annotation", "autoscaling.knative.dev/min-scale=2", "--container-concurrency", "1"];
    const [result] = resultsOf((await runFairway([...argv, ...min], { files })).stdout);
    expect(result!.timeline[0]!.readyPods).toBe(2);
    expect(result!.timeline.every(point => point.inFlight <= point.readyPods + point.drainingPods)).toBe(true);
  });

  it("draws table, pictures and reasons, without colours where there is no terminal", async () => {
    const argv = ["simulate", "-f", "hello.yaml", "--trace", "trace.csv", "--tail", "60s", "--svg", "out.svg"];
    const { exitCode, stdout, written } = await runFairway(argv, { files });
    expect(exitCode).toBe(0);
    expect(stdout).toContain("hello: a trace of 4 requests, seed 1");
    expect(stdout).toMatch(/POLICY +REQUESTS +OK +COLD STARTS +P50/);
    expect(stdout).toMatch(/\nkpa +4 +4 +1 /);
    expect(stdout).toContain("kpa: ready pods");
    expect(stdout).toMatch(/1s +0 -> 2 +stable-window +2 requests in flight/);
    expect(stdout).not.toContain("\u001b");
    const svg = String(written.get("out.svg"));
    expect(svg).toMatch(/^<svg [^]*<\/svg>\n$/);
    expect(svg).toContain("waiting requests");
    const plain = await runFairway(["simulate", ...SHORT, "--no-plot"], { files });
    expect(plain.stdout).not.toContain("ready pods\n");
  });

  it("shows flows of a trace under fair and fifo queues", async () => {
    const elephant = Array.from({ length: 300 }, () => "1,0.1,elephant").join("\n");
    const trace = `time,service_time,flow\n${elephant}\n1.5,0.1,mouse\n2.5,0.1,mouse\n`;
    const argv = ["simulate", "--trace", "t.csv", "--policy", "manual:1", "--container-concurrency", "1", "-o", "json"];
    const policies = ["--queue-policy", "fair", "--queue-policy", "fifo"];
    const { stdout } = await runFairway([...argv, ...policies], { files: { "t.csv": trace } });
    const [fair, fifo] = resultsOf(stdout);
    expect([fair!.name, fifo!.name]).toEqual(["manual:1, fair", "manual:1, fifo"]);
    const mouse = (result: SimulationResult) => result.flows.find(({ flow }) => flow === "mouse")!.latencyMs.max;
    expect(mouse(fair!)).toBeLessThan(500);
    expect(mouse(fifo!)).toBeGreaterThan(20_000);
  });

  it("serves priority levels of a trace by their shares, exempt first", async () => {
    const rows = ["workload-low", "workload-high", "exempt"].flatMap(level =>
      Array.from({ length: 50 }, () => `1,0.1,${level},${level}`),
    );
    const files = { "t.csv": `time,service_time,flow,level\n${rows.join("\n")}\n` };
    const argv = ["simulate", "--trace", "t.csv", "--policy", "manual:1", "--container-concurrency", "1", "-o", "json"];
    const [result] = resultsOf((await runFairway(argv, { files })).stdout);
    const p50 = (flow: string): number => result!.flows.find(one => one.flow === flow)!.latencyMs.p50;
    expect(p50("exempt")).toBeLessThan(p50("workload-low"));
    // 100 shares against 40.
    expect(p50("workload-low")).toBeLessThan(p50("workload-high"));
  });

  it.each([
    [["--pattern", "square"], "Allowed choices are step, spike, diurnal, poisson, burst"],
    [["--policy", "hpa"], "Expected kpa, cloudrun, manual or manual:COUNT."],
    [["--service-time", "fast"], "Expected a duration (100ms), exp(MEAN)"],
    [["--rps", "many"], "Expected a number in [0, 1000000]."],
    [["--annotation", "x"], "Expected KEY=VALUE."],
    [["-f", "gone.yaml"], "cannot read gone.yaml"],
    [["--created", "--initial-pods", "1"], "exclude each other"],
    [["--cpu-per-request", "1"], "needs a CPU limit"],
    [["--rps", "1e6", "--duration", "1h"], "limit 2000000"],
    [["--annotation", "autoscaling.knative.dev/min-scale=x"], "validation failed"],
    [["one.yaml", "extra"], "too many arguments"],
  ])("refuses %j as a usage error", async (argv, message) => {
    const { exitCode, stderr } = await runFairway(["simulate", ...argv], { files });
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(message)]);
  });
});

describe("fairway", () => {
  it("has help, a version, and a usage error for what it does not know", async () => {
    expect((await runFairway(["version"])).stdout).toMatch(/^fairway \d/);
    expect((await runFairway(["--version"])).exitCode).toBe(0);
    const help = await runFairway(["help"]);
    expect([help.exitCode, help.stdout]).toEqual([0, expect.stringContaining("simulate")]);
    expect((await runFairway(["help", "simulate"])).stdout).toContain("--service-time");
    expect((await runFairway(["fly"])).exitCode).toBe(2);
    expect((await runFairway([])).exitCode).toBe(2);
  });
});
