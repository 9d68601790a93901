import { describe, expect, it } from "vitest";
import { ConfigError, parseConfig } from "./config.ts";

describe("configuration of the operator", () => {
  it("has a default for everything", () => {
    expect(parseConfig({ POD_NAME: "p" })).toMatchObject({
      systemNamespace: "fairway-system",
      identity: "p",
      podIp: undefined,
      webhookPort: 8443,
      metricsPort: 9090,
      statsPort: 8086,
      leaseDurationMs: 15_000,
      webhookExtraHosts: [],
    });
  });

  it("gives a process without a pod a name of its own", () => {
    expect(parseConfig({}).identity).toContain(String(process.pid));
  });

  it("splits lists", () => {
    expect(parseConfig({ WEBHOOK_EXTRA_HOSTS: "a,10.0.0.1" }).webhookExtraHosts).toEqual(["a", "10.0.0.1"]);
  });

  it.each([
    [{ WEBHOOK_PORT: "70000" }, /WEBHOOK_PORT: .*65535.*\(got "70000"\)/],
    [{ POD_IP: "not-an-address" }, /POD_IP: .*\(got "not-an-address"\)/],
    [{ LOG_LEVEL: "loud" }, /LOG_LEVEL/],
    [{ LEASE_RENEW_DEADLINE_MS: "20000" }, /LEASE_RENEW_DEADLINE_MS: must be below LEASE_DURATION_MS/],
    [{ LEASE_RETRY_PERIOD_MS: "12000" }, /LEASE_RETRY_PERIOD_MS: must be below LEASE_RENEW_DEADLINE_MS/],
    [{ DRAIN_TIMEOUT_MS: "14000" }, /DRAIN_TIMEOUT_MS: must end before the lease does/],
  ])("names the variable, the rule and the value: %j", (env, message) => {
    expect(() => parseConfig(env)).toThrow(ConfigError);
    expect(() => parseConfig(env)).toThrow(message);
  });
});
