import { afterEach, describe, expect, it } from "vitest";
import type { GatewayReport } from "../../api/wire/stats.ts";
import { startStatsIntake, type StatsIntake } from "./stats-intake.ts";

let intake: StatsIntake | undefined;
afterEach(async () => {
  await intake?.close();
  intake = undefined;
});

const report: GatewayReport = {
  gateway: "gw-1",
  instance: "boot",
  sequence: 1,
  timestampMs: 1,
  revisions: [
    { namespace: "ns", revision: "r", averageConcurrentRequests: 1.5, requestCount: 3, waiting: 1, inFlight: 0 },
  ],
  programmed: {},
  full: true,
  poke: false,
};

async function start(received: GatewayReport[], refused: string[] = []): Promise<string> {
  intake = await startStatsIntake({
    port: 0,
    isGateway: token => Promise.resolve(token === "good"),
    onReport: r => {
      received.push(r);
      return { needFull: false, hints: {} };
    },
    onRefused: reason => refused.push(reason),
  });
  return `http://127.0.0.1:${intake.port}/v1/stats`;
}

function post(url: string, body: string, token = "good"): Promise<Response> {
  return fetch(url, { method: "POST", body, headers: { authorization: `Bearer ${token}` } });
}

describe("stats intake", () => {
  it("passes on a gateway's report and answers with hints", async () => {
    const received: GatewayReport[] = [];
    const res = await post(await start(received), JSON.stringify(report));
    expect(res.status).toBe(200);
    expect(await res.json()).toEqual({ needFull: false, hints: {} });
    expect(received).toEqual([report]);
  });

  it("refuses a token that is not a gateway's before it reads the report", async () => {
    const received: GatewayReport[] = [];
    const refused: string[] = [];
    const res = await post(await start(received, refused), JSON.stringify(report), "bad");
    expect(res.status).toBe(401);
    expect(received).toEqual([]);
    expect(refused).toEqual(["not a gateway's token"]);
  });

  it("names the field of a malformed report", async () => {
    const res = await post(await start([]), JSON.stringify({ ...report, sequence: -1 }));
    expect(res.status).toBe(400);
    expect(((await res.json()) as { error: string }).error).toMatch(/^sequence: /);
  });

  it("answers 400 to what is not JSON and 404 elsewhere", async () => {
    const url = await start([]);
    expect((await post(url, "{")).status).toBe(400);
    expect((await post(`${url}/x`, "{}")).status).toBe(404);
  });
});
