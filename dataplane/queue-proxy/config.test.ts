import { describe, expect, it } from "vitest";
import { ConfigError, parseConfig } from "./config.ts";

const required = {
  CONTAINER_CONCURRENCY: "2",
  USER_PORT: "8080",
  REVISION_TIMEOUT_SECONDS: "300",
  SERVING_NAMESPACE: "default",
  SERVING_REVISION: "hello-00001",
  SERVING_POD: "hello-00001-deployment-abc",
};

describe("parseConfig", () => {
  it("fills in every default from the required keys alone", () => {
    expect(parseConfig(required)).toMatchObject({
      containerConcurrency: 2,
      queueDepth: 20,
      app: { host: "127.0.0.1", port: 8080, protocol: "http1" },
      ports: { http: 8012, h2c: 8013, admin: 8022, metrics: 9091 },
      timeouts: { wholeMs: 300_000, responseStartMs: 0, idleMs: 0 },
      readinessProbes: [{ check: { kind: "tcp", host: "127.0.0.1", port: 8080 }, timeoutMs: 100, successThreshold: 1 }],
      drain: { quietMs: 3000, maxMs: 303_000 },
      measureCpu: false,
    });
  });

  it("takes an empty value for an absent one", () => {
    expect(parseConfig({ ...required, USER_PROTOCOL: "", SERVING_READINESS_PROBE: "" }).app.protocol).toBe("http1");
  });

  it.each([
    {
      title: "httpGet without a port uses the user port",
      probe: { httpGet: { path: "healthz", port: 0, httpHeaders: [{ name: "X-A", value: "b" }] } },
      check: { kind: "http", host: "127.0.0.1", port: 8080, path: "/healthz", tls: false, headers: { "X-A": "b" } },
      timeoutMs: 100,
    },
    {
      title: "a period opts out of quick attempts",
      probe: { tcpSocket: { port: "9000" }, periodSeconds: 3, timeoutSeconds: 2 },
      check: { kind: "tcp", host: "127.0.0.1", port: 9000 },
      timeoutMs: 2000,
      periodMs: 3000,
    },
    {
      title: "grpc keeps its service",
      probe: { grpc: { port: 50051, service: "echo" } },
      check: { kind: "grpc", host: "127.0.0.1", port: 50051, service: "echo" },
      timeoutMs: 100,
    },
    {
      title: "exec becomes a look at the port",
      probe: { exec: { command: ["true"] } },
      check: { kind: "tcp", host: "127.0.0.1", port: 8080 },
      timeoutMs: 100,
    },
  ])("readiness: $title", ({ probe, check, timeoutMs, periodMs = 0 }) => {
    const config = parseConfig({ ...required, SERVING_READINESS_PROBE: JSON.stringify(probe) });
    expect(config.readinessProbes).toMatchObject([{ check, timeoutMs, periodMs }]);
  });

  it("takes a list of probes, one per container", () => {
    const list = [{ tcpSocket: { port: 1 } }, { httpGet: { port: 2 } }];
    const config = parseConfig({ ...required, SERVING_READINESS_PROBE: JSON.stringify(list) });
    expect(config.readinessProbes.map(probe => probe.check.port)).toEqual([1, 2]);
  });

  it("names the key, the bound and the value of what is wrong", () => {
    const act = () =>
      parseConfig({
        ...required,
        USER_PORT: "70000",
        USER_PROTOCOL: "h3",
        SERVING_READINESS_PROBE: "{",
        SERVING_POD: "",
      });
    expect(act).toThrow(ConfigError);
    expect(act).toThrow(/USER_PORT: .*<=65535 \(value: 70000\)/);
    expect(act).toThrow(/USER_PROTOCOL: .*"http1"\|"h2c" \(value: h3\)/);
    expect(act).toThrow(/SERVING_READINESS_PROBE: not a probe/);
    expect(act).toThrow(/SERVING_POD: .*\(value: absent\)/);
  });
});
