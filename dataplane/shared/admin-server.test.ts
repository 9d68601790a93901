import { Counter, Registry } from "prom-client";
import { afterEach, describe, expect, it } from "vitest";
import { startAdminServer, type AdminServer } from "./admin-server.ts";

let server: AdminServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

async function start(unready: () => string | undefined): Promise<string> {
  const registry = new Registry();
  new Counter({ name: "things_total", help: "Things.", registers: [registry] }).inc(3);
  server = await startAdminServer({
    port: 0,
    host: "127.0.0.1",
    registry,
    unhealthy: () => undefined,
    unready,
    json: { "/debug/things": query => ({ only: query.get("only") }) },
  });
  return `http://127.0.0.1:${server.port}`;
}

describe("admin server", () => {
  it("serves metrics, probes and views", async () => {
    const base = await start(() => undefined);
    expect(await (await fetch(`${base}/metrics`)).text()).toContain("things_total 3");
    expect((await fetch(`${base}/healthz`)).status).toBe(200);
    expect((await fetch(`${base}/readyz`)).status).toBe(200);
    expect(await (await fetch(`${base}/debug/things?only=x`)).json()).toEqual({ only: "x" });
  });

  it("says why it is not ready, and refuses what it does not know", async () => {
    const base = await start(() => "caches are not synced");
    const ready = await fetch(`${base}/readyz`);
    expect([ready.status, await ready.text()]).toEqual([503, "caches are not synced\n"]);
    expect((await fetch(`${base}/nothing`)).status).toBe(404);
    expect((await fetch(`${base}/metrics`, { method: "POST" })).status).toBe(405);
  });
});
