import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { EarlyReadiness, queueProxyProbe } from "./early-readiness.ts";
import type { Pod } from "./pod.ts";
import type { RevisionBackend } from "./revision-backend.ts";

const settle = () => new Promise(resolve => setImmediate(resolve));

describe("EarlyReadiness", () => {
  function setUp(answers: (address: string) => Promise<boolean>) {
    const clock = new FakeClock();
    const asked: string[] = [];
    const ready: string[] = [];
    const pod = (address: string) => ({ address }) as Pod;
    const backend = {
      waiting: 1,
      startingPods: [pod("a"), pod("b")],
      readyByProbe(it: Pod) {
        ready.push(it.address);
        backend.startingPods = backend.startingPods.filter(other => other !== it);
      },
    };
    const early = new EarlyReadiness({
      clock,
      periodMs: 25,
      probe: address => {
        asked.push(address);
        return answers(address);
      },
    });
    return { clock, asked, ready, backend, watch: () => early.watch(backend as unknown as RevisionBackend) };
  }

  it("asks each starting pod every period until it says yes", async () => {
    let isUp = false;
    const { clock, asked, ready, watch } = setUp(address => Promise.resolve(isUp && address === "b"));
    watch();
    watch();
    expect(asked).toEqual(["a", "b"]);
    await settle();
    isUp = true;
    clock.advance(25);
    await settle();
    expect(ready).toEqual(["b"]);
    clock.advance(25);
    expect(asked).toEqual(["a", "b", "a", "b", "a"]);
  });

  it("stops when nobody waits, and begins again when somebody does", async () => {
    const { clock, asked, backend, watch } = setUp(() => Promise.resolve(false));
    watch();
    backend.waiting = 0;
    clock.advance(25);
    clock.advance(1_000);
    expect(asked).toHaveLength(2);
    expect(clock.pending).toBe(0);
    backend.waiting = 1;
    watch();
    expect(asked).toHaveLength(4);
  });

  it("does not pile up questions that get no answer", () => {
    const { clock, asked, watch } = setUp(() => new Promise(() => undefined));
    watch();
    for (let i = 0; i < 20; i++) clock.advance(25);
    expect(asked).toHaveLength(8);
  });
});

describe("queueProxyProbe", () => {
  let close: () => void = () => undefined;
  afterEach(() => close());
  async function start(handler: RequestListener): Promise<number> {
    const server = createServer(handler);
    await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve));
    close = () => {
      server.closeAllConnections();
      server.close();
    };
    return (server.address() as AddressInfo).port;
  }

  it("asks as a prober and believes 200 only", async () => {
    let status = 503;
    const seen: unknown[] = [];
    const port = await start((req, res) => {
      seen.push(req.headers["k-network-probe"], req.method);
      res.writeHead(status).end("queue");
    });
    const probe = queueProxyProbe(port);
    expect(await probe("127.0.0.1:8013")).toBe(false);
    status = 200;
    expect(await probe("127.0.0.1:8013")).toBe(true);
    expect(seen).toEqual(["queue", "GET", "queue", "GET"]);
  });

  it("takes silence and a refusal for no", async () => {
    const port = await start(() => undefined);
    const probe = queueProxyProbe(port);
    expect(await probe("127.0.0.1:8012")).toBe(false);
    close();
    expect(await probe("127.0.0.1:8012")).toBe(false);
  });
});
