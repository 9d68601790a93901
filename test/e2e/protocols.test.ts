import { request as httpRequest, type ClientRequest } from "node:http";
import { connect, type ClientHttp2Session } from "node:http2";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { load } from "../../hack/kit/load.ts";
import { applyReady, cluster, ownNamespace, request, service, target } from "./support.ts";

const namespace = ownNamespace("protocols");
const MIN_SCALE = { "autoscaling.knative.dev/min-scale": "1" };

/** Pieces of a body as they come, one at a time. */
class Pieces {
  readonly #pieces: string[] = [];
  #text = "";

  add(piece: Buffer): void {
    this.#text += piece.toString("utf8");
    this.#pieces.push(piece.toString("utf8"));
  }

  get text(): string {
    return this.#text;
  }

  /** Waits until the text so far is `expected`; what never comes shows as the text that did. */
  async until(expected: string, timeoutMs = 30_000): Promise<void> {
    for (let waited = 0; waited < timeoutMs && this.#text !== expected; waited += 10) await delay(10);
    expect(this.#text).toBe(expected);
  }
}

describe("HTTP/1.1", () => {
  beforeAll(async () => {
    await applyReady(service(namespace, "h1", { annotations: MIN_SCALE }));
  });

  it("streams answers: each piece is passed on when it comes", async () => {
    const { address, port, host } = target(namespace, "h1");
    const arrivals: number[] = [];
    const text = await new Promise<string>((resolve, reject) => {
      let body = "";
      const req = httpRequest({ host: address, port, path: "/?chunks=4&interval=700", headers: { host } }, res => {
        res.on("data", (piece: Buffer) => {
          arrivals.push(performance.now());
          body += piece.toString("utf8");
        });
        res.on("end", () => resolve(body));
        res.on("error", reject);
      });
      req.on("error", reject);
      req.end();
    });
    expect(text).toBe("0\n1\n2\n3\n");
    // 2.1 s lie between the first and the last; a proxy that collects them would bring them together.
    expect((arrivals.at(-1) ?? 0) - (arrivals[0] ?? 0)).toBeGreaterThan(1_000);
  });

  it("streams both ways at once: an answer begins while the request is still being sent", async () => {
    const { address, port, host } = target(namespace, "h1");
    const pieces = new Pieces();
    const ended = Promise.withResolvers<void>();
    const req: ClientRequest = httpRequest(
      { host: address, port, path: "/echo", method: "POST", headers: { host } },
      res => {
        res.on("data", (piece: Buffer) => pieces.add(piece));
        res.on("end", () => ended.resolve());
        res.on("error", ended.reject);
      },
    );
    req.on("error", ended.reject);
    req.write("one ");
    await pieces.until("one ");
    req.write("two ");
    await pieces.until("one two ");
    req.end("three");
    await ended.promise;
    expect(pieces.text).toBe("one two three");
  });

  it("passes on bodies of some size whole", async () => {
    const body = "0123456789abcdef".repeat(256 * 1024);
    const answer = await request(namespace, "h1", { path: "/echo", method: "POST", body });
    expect([answer.status, answer.body.length, answer.body === body]).toEqual([200, body.length, true]);
  });

  it("tells the app who asked, and keeps hop-by-hop fields to itself", async () => {
    const answer = await request(namespace, "h1", {
      path: "/headers",
      headers: { connection: "close, x-secret", "x-secret": "hop", "x-kept": "yes" },
    });
    const { host, headers } = JSON.parse(answer.body) as {
      readonly host: string;
      readonly headers: Readonly<Record<string, readonly string[]>>;
    };
    expect(host).toBe(`h1.${namespace}.example.com`);
    expect(headers["X-Kept"]).toEqual(["yes"]);
    expect(headers).not.toHaveProperty("X-Secret");
    expect(headers["X-Forwarded-Proto"]).toEqual(["http"]);
    expect(headers["X-Forwarded-For"]?.[0]).toMatch(/^[\d.]+$/);
    expect(headers["Forwarded"]?.[0]).toContain("proto=http");
  });

  it("takes a request back when its client leaves", async () => {
    const left = new AbortController();
    const asked = request(namespace, "h1", { path: "/?sleep=60000", signal: left.signal });
    const inFlight = async (): Promise<number> => {
      const answer = await request(namespace, "h1", { path: "/info" });
      return (JSON.parse(answer.body) as { readonly inFlight: number }).inFlight;
    };
    // The one that asks is one of them.
    await expect.poll(inFlight, { timeout: 30_000 }).toBe(2);
    left.abort();
    await expect(asked).rejects.toThrow();
    await expect.poll(inFlight, { timeout: 30_000 }).toBe(1);
  });
});

describe("WebSocket", () => {
  it("echoes, and outlives the time in which an answer has to begin (KS#16169)", async () => {
    await applyReady(
      service(namespace, "socket", {
        annotations: MIN_SCALE,
        timeoutSeconds: 30,
        pod: { responseStartTimeoutSeconds: 2 },
      }),
    );
    const { address, port, host } = target(namespace, "socket");
    const socket = new WebSocket(`ws://${address}:${port}/ws`, { headers: { host } });
    try {
      await new Promise((resolve, reject) => {
        socket.once("open", resolve);
        socket.once("error", reject);
      });
      const echo = (text: string): Promise<string> =>
        new Promise((resolve, reject) => {
          socket.once("message", (data: Buffer) => resolve(data.toString("utf8")));
          socket.once("close", code => reject(new Error(`closed: ${code}`)));
          socket.send(text);
        });
      expect(await echo("first")).toBe("first");
      await delay(4_000);
      expect(await echo("x".repeat(20_000))).toBe("x".repeat(20_000));
    } finally {
      socket.terminate();
    }
  });
});

describe("HTTP/2 without TLS", () => {
  let session: ClientHttp2Session;
  beforeAll(async () => {
    const ports = [{ name: "h2c", containerPort: 8080 }];
    await applyReady(service(namespace, "h2", { annotations: MIN_SCALE, container: { ports } }));
    const { address, port } = cluster().gateway;
    session = connect(`http://${address}:${port}`);
    session.on("error", () => undefined);
  });
  afterAll(() => session.destroy());

  const ask = (path: string, method = "GET") =>
    session.request({ ":path": path, ":method": method, ":authority": `h2.${namespace}.example.com` });

  it("goes to the app as HTTP/2", async () => {
    const stream = ask("/headers");
    const pieces = new Pieces();
    stream.on("data", (piece: Buffer) => pieces.add(piece));
    const status = await new Promise((resolve, reject) => {
      stream.on("response", headers => resolve(headers[":status"]));
      stream.on("error", reject);
    });
    await new Promise(resolve => stream.on("end", resolve));
    expect(status).toBe(200);
    expect((JSON.parse(pieces.text) as { readonly protocol: string }).protocol).toBe("HTTP/2.0");
  });

  it("streams both ways at once, several streams on one connection, as gRPC does", async () => {
    await Promise.all(
      [1, 2, 3].map(async i => {
        const stream = ask("/echo", "POST");
        const pieces = new Pieces();
        stream.on("data", (piece: Buffer) => pieces.add(piece));
        const ended = new Promise((resolve, reject) => {
          stream.on("end", resolve);
          stream.on("error", reject);
        });
        stream.write(`a${i} `);
        await pieces.until(`a${i} `);
        stream.write(`b${i} `);
        await pieces.until(`a${i} b${i} `);
        stream.end(`c${i}`);
        await ended;
        expect(pieces.text).toBe(`a${i} b${i} c${i}`);
      }),
    );
  });

  it("also takes clients that speak HTTP/1.1", async () => {
    const answer = await request(namespace, "h2", { path: "/headers" });
    expect((JSON.parse(answer.body) as { readonly protocol: string }).protocol).toBe("HTTP/2.0");
  });
});

describe("limits of a revision", () => {
  it("containerConcurrency is never exceeded at the app, and nobody is turned away", async () => {
    await applyReady(
      service(namespace, "hard", {
        containerConcurrency: 2,
        annotations: { "autoscaling.knative.dev/min-scale": "2", "autoscaling.knative.dev/max-scale": "2" },
        // The app itself answers 500 when it is exceeded.
        env: { MAX_CONCURRENCY: "2" },
      }),
    );
    let most = 0;
    const pods = new Set<string>();
    const report = await load(target(namespace, "hard"), {
      concurrency: 16,
      perClient: 15,
      path: "/?sleep=50",
      onAnswer: ({ headers }) => {
        most = Math.max(most, Number(headers["x-max-in-flight"]));
        pods.add(String(headers["x-pod"]));
      },
    });
    expect([report.errors, report.byStatus]).toEqual([[], { "200": 240 }]);
    expect([most, pods.size]).toEqual([2, 2]);
  });

  it("timeoutSeconds ends a request that takes longer", async () => {
    await applyReady(service(namespace, "slow", { annotations: MIN_SCALE, timeoutSeconds: 2 }));
    const answer = await request(namespace, "slow", { path: "/?sleep=60000" });
    expect(answer.status).toBe(504);
    expect(answer.tookMs).toBeGreaterThan(1_900);
    expect(answer.tookMs).toBeLessThan(30_000);
    expect((await request(namespace, "slow", { path: "/?sleep=100" })).status).toBe(200);
  });

  it("the clock of timeoutSeconds starts at the app: waiting for a place is not counted (KS#10792)", async () => {
    await applyReady(
      service(namespace, "queued", {
        timeoutSeconds: 7,
        containerConcurrency: 1,
        annotations: { ...MIN_SCALE, "autoscaling.knative.dev/max-scale": "1" },
      }),
    );
    // The third waits for 6 s and then takes 3 s: together more than the limit.
    const report = await load(target(namespace, "queued"), { concurrency: 3, perClient: 1, path: "/?sleep=3000" });
    expect([report.errors, report.byStatus]).toEqual([[], { "200": 3 }]);
    expect(report.latenciesMs.at(-1)).toBeGreaterThan(8_500);
  });
});
