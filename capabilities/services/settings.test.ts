import { describe, expect, it } from "vitest";
import { SettingsStore } from "./settings.ts";

const store = (): SettingsStore =>
  new SettingsStore({ systemNamespace: "fairway-system", clusterDomain: "cluster.local", queueProxyImage: "x:1" });

describe("SettingsStore", () => {
  it("begins with the defaults and takes what a ConfigMap says", () => {
    const settings = store();
    expect(settings.current.gc.minNonActiveRevisions).toBe(20);
    expect(settings.update("config-gc", { "min-non-active-revisions": "3" })).toBe(true);
    expect(settings.current.gc.minNonActiveRevisions).toBe(3);
    settings.update("config-gc", undefined);
    expect(settings.current.gc.minNonActiveRevisions).toBe(20);
  });

  it("keeps the last good one when a value cannot be used, and names it", () => {
    const settings = store();
    settings.update("config-deployment", { "progress-deadline": "120s" });
    expect(() => settings.update("config-deployment", { "progress-deadline": "soon" })).toThrow(
      /config-deployment: progress-deadline .*"soon"/,
    );
    expect(settings.current.pods.deployment.progressDeadlineMs).toBe(120_000);
  });

  it("leaves ConfigMaps of others alone", () => {
    const settings = store();
    const before = settings.current;
    expect(settings.update("kube-root-ca.crt", { "ca.crt": "..." })).toBe(false);
    expect(settings.current).toBe(before);
  });
});
