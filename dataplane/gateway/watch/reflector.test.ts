import { pino } from "pino";
import { afterEach, describe, expect, it } from "vitest";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { FakeApi } from "../testing/fake-api.ts";
import { KubeError } from "./kube-client.ts";
import { reflect, type KubeObject, type WatchedCollection } from "./reflector.ts";

const PATH = "/things";
const stopping: (() => void)[] = [];
afterEach(() => {
  for (const stop of stopping.splice(0)) stop();
});

function follow(api: FakeApi, collection: Partial<WatchedCollection> = {}) {
  const clock = new FakeClock();
  const controller = new AbortController();
  const seen: string[] = [];
  let isSynced = false;
  let failures = 0;
  const name = ({ metadata }: KubeObject) => metadata.name;
  const ended = reflect(
    {
      client: api,
      clock,
      random: () => 0.5,
      logger: pino({ level: "silent" }),
      collection: { kind: "Thing", path: PATH, ...collection },
      handler: {
        replace: objects => seen.push(`= ${objects.map(name).join(",")}`),
        upsert: object => seen.push(`+ ${name(object)}`),
        remove: object => seen.push(`- ${name(object)}`),
      },
      onFailure: () => failures++,
    },
    () => (isSynced = true),
    controller.signal,
  );
  stopping.push(() => controller.abort());
  return { clock, seen, ended, stop: () => controller.abort(), isSynced: () => isSynced, failures: () => failures };
}

const thing = (name: string, labels: Record<string, string> = {}) => ({ metadata: { name, namespace: "ns", labels } });
const settle = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await new Promise(resolve => setImmediate(resolve));
};

describe("reflect", () => {
  it("lists, says so, and then follows", async () => {
    const api = new FakeApi();
    api.apply(PATH, thing("a"));
    const { seen, isSynced } = follow(api);
    await settle();
    expect(isSynced()).toBe(true);
    api.apply(PATH, thing("b"));
    api.apply(PATH, thing("a"));
    api.delete(PATH, "ns", "b");
    await settle();
    expect(seen).toEqual(["= a", "+ b", "+ a", "- b"]);
  });

  it("asks for what it selects only", async () => {
    const api = new FakeApi();
    api.apply(PATH, thing("a", { color: "red" }));
    api.apply(PATH, thing("b", { color: "blue" }));
    const { seen } = follow(api, { labelSelector: "color=red" });
    await settle();
    api.apply(PATH, thing("c", { color: "red" }));
    api.apply(PATH, thing("d"));
    await settle();
    expect(seen).toEqual(["= a", "+ c"]);
  });

  it("keeps what it had while the server is away, trying again more and more rarely", async () => {
    const api = new FakeApi();
    api.isAway = true;
    const { clock, seen, isSynced, failures } = follow(api);
    await settle();
    expect([isSynced(), failures()]).toEqual([false, 1]);
    for (const delayMs of [150, 300, 600, 1200]) {
      clock.advance(delayMs - 1);
      await settle();
      const before = failures();
      clock.advance(1);
      await settle();
      expect(failures()).toBe(before + 1);
    }
    api.isAway = false;
    api.apply(PATH, thing("a"));
    clock.advance(10_000);
    await settle();
    expect(isSynced()).toBe(true);
    expect(seen).toEqual(["= a"]);
  });

  it("goes on from where a broken watch was, without listing", async () => {
    const api = new FakeApi();
    const { clock, seen } = follow(api);
    await settle();
    api.breakWatches();
    await settle();
    clock.advance(10_000);
    await settle();
    api.apply(PATH, thing("a"));
    await settle();
    expect([api.lists, seen]).toEqual([1, ["= ", "+ a"]]);
  });

  it("lists anew, at once, when its version is too old", async () => {
    const api = new FakeApi();
    const { seen } = follow(api);
    await settle();
    api.breakWatches(new KubeError("too old", 410));
    await settle();
    expect([api.lists, seen]).toEqual([2, ["= ", "= "]]);
  });

  it("takes a kind that the server does not have for an empty one, where that may be", async () => {
    const api = new FakeApi();
    api.list = () => Promise.reject(new KubeError("no such kind", 404));
    const { clock, seen, isSynced, failures } = follow(api, { optional: true });
    await settle();
    expect([isSynced(), failures(), seen]).toEqual([true, 0, ["= "]]);
    clock.advance(30_000);
    await settle();
    expect(seen).toEqual(["= ", "= "]);
    const strict = follow(api);
    await settle();
    expect([strict.isSynced(), strict.failures()]).toEqual([false, 1]);
  });

  it("ends with its signal", async () => {
    const api = new FakeApi();
    const { ended, stop } = follow(api);
    await settle();
    stop();
    await ended;
    expect(api.watching).toBe(0);
  });
});
