import { describe, expect, it } from "vitest";
import { gatewayTokens } from "./gateway-tokens.ts";

const username = "system:serviceaccount:fairway-system:fairway-gateway";

describe("gatewayTokens", () => {
  it("accepts the gateway's ServiceAccount only, and asks once per token while the verdict holds", async () => {
    let nowMs = 1;
    const asked: string[] = [];
    const isGateway = gatewayTokens({
      username,
      now: () => nowMs,
      review: token => {
        asked.push(token);
        return Promise.resolve(token === "gw" ? username : "system:serviceaccount:default:default");
      },
    });
    expect([await isGateway("gw"), await isGateway("gw"), await isGateway("x"), await isGateway("x")]).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(asked).toEqual(["gw", "x"]);
    nowMs += 10_001;
    expect(await isGateway("x")).toBe(false);
    expect(await isGateway("gw")).toBe(true);
    expect(asked).toEqual(["gw", "x", "x"]);
    nowMs += 300_000;
    await isGateway("gw");
    expect(asked).toEqual(["gw", "x", "x", "gw"]);
  });

  it("does not remember an error of the API server", async () => {
    let calls = 0;
    const isGateway = gatewayTokens({
      username,
      now: () => 1,
      review: () => (++calls === 1 ? Promise.reject(new Error("API server away")) : Promise.resolve(username)),
    });
    await expect(isGateway("gw")).rejects.toThrow("API server away");
    expect(await isGateway("gw")).toBe(true);
  });
});
