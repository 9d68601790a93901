import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createHealthServer, type HealthServer } from "./health-server.ts";
import { silentLogger } from "./logging.ts";

describe("health server", () => {
  let missing: string[];
  let metrics: () => Promise<string>;
  let server: HealthServer;
  let port: number;
  const get = async (path: string, method = "GET") => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method });
    return `${response.status} ${(await response.text()).trim()}`;
  };

  beforeEach(async () => {
    missing = [];
    metrics = () => Promise.resolve("up 1");
    server = createHealthServer({
      metrics: () => metrics(),
      notReady: () => missing,
      debug: new Map([
        ["echo", (query: URLSearchParams) => (query.has("name") ? { name: query.get("name") } : undefined)],
        [
          "broken",
          () => {
            throw new Error("broken");
          },
        ],
      ]),
      log: silentLogger,
    });
    port = await server.listen(0);
  });
  afterEach(() => server.close());

  it("is alive when it answers, and ready when nothing is missing", async () => {
    expect(await get("/healthz")).toBe("200 ok");
    expect(await get("/readyz")).toBe("200 ok");
    missing = ["no list yet of /api/v1/pods", "webhooks are not served yet"];
    expect(await get("/readyz")).toBe("503 not ready: no list yet of /api/v1/pods; webhooks are not served yet");
    expect(await get("/healthz")).toBe("200 ok");
  });

  it("shows metrics, also when they fail", async () => {
    expect(await get("/metrics")).toBe("200 up 1");
    metrics = () => Promise.reject(new Error("no"));
    expect(await get("/metrics")).toBe("500 metrics could not be collected");
  });

  it("answers debug pages, and survives one that throws", async () => {
    expect(await get("/debug/echo?name=x")).toBe('200 {"name":"x"}');
    expect(await get("/debug/echo")).toBe("404 not found");
    expect(await get("/debug/none")).toBe("404 not found");
    expect(await get("/debug/broken")).toBe("500 debug page failed");
  });

  it("takes nothing but GET", async () => {
    expect(await get("/metrics", "POST")).toBe("405 only GET");
    expect(await get("/other")).toBe("404 not found");
  });
});
