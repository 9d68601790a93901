import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { systemClock } from "../clock.ts";
import { FakeClock } from "../testing/fake-clock.ts";
import { endToEndHeaders } from "./hop-by-hop.ts";
import { startListener, type Listener } from "./listener.ts";
import { ClientGoneError, UpstreamError, UpstreamTimeoutError } from "./relay.ts";
import { tunnel, type TunnelOptions, type TunnelResult } from "./tunnel.ts";

const host = "127.0.0.1";
const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

async function startApp(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", socket => sockets.add(socket));
  await new Promise<void>(resolve => server.listen(0, host, resolve));
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** A listener that tunnels everything to the app, and the outcome of its first exchange. */
async function startProxy(
  appPort: number,
  changes: Partial<TunnelOptions> = {},
): Promise<{ listener: Listener; outcome: Promise<TunnelResult> }> {
  const { promise, resolve, reject } = Promise.withResolvers<TunnelResult>();
  promise.catch(() => undefined);
  const listener = await startListener({
    port: 0,
    host,
    onExchange: exchange => {
      const options = { clock: systemClock, host, port: appPort, connectTimeoutMs: 1000, responseStartMs: 0 };
      const request = {
        authority: exchange.authority,
        headers: endToEndHeaders(exchange.rawHeaders, new Set(["host"])),
      };
      tunnel(exchange, request, { ...options, ...changes }).then(resolve, reject);
    },
  });
  closers.push(() => listener.destroy());
  return { listener, outcome: promise };
}

function event(target: WebSocket, name: string): Promise<unknown[]> {
  return new Promise((resolve, reject) => {
    target.once(name, (...args: unknown[]) => resolve(args));
    if (name !== "error") target.once("error", reject);
  });
}

describe("tunnel", () => {
  it("passes WebSocket messages both ways, with Host and fields as the client sent them", async () => {
    const server = createServer();
    let seen: string | undefined;
    new WebSocketServer({ server }).on("connection", (socket, req) => {
      seen = `${req.url} ${req.headers.host} ${String(req.headers["x-a"])}`;
      socket.on("message", data => socket.send(`echo ${(data as Buffer).toString()}`));
    });
    const { listener, outcome } = await startProxy(await startApp(server));
    const client = new WebSocket(`ws://${host}:${listener.port}/chat?b=1`, {
      headers: { "X-A": "1", host: "hello.example.com" },
    });
    await event(client, "open");
    client.send("one");
    const [data] = await event(client, "message");
    expect((data as Buffer).toString()).toBe("echo one");
    expect(seen).toBe("/chat?b=1 hello.example.com 1");
    expect(listener.active).toBe(1);
    client.close();
    await event(client, "close");
    const result = await outcome;
    expect(result.status).toBe(101);
    expect(result.responseBytes).toBeGreaterThan(0);
  });

  it("relays another answer as it is", async () => {
    const app = createServer();
    app.on("upgrade", (_req, socket) => {
      socket.end("HTTP/1.1 403 Forbidden\r\nX-Why: no\r\nContent-Length: 6\r\nConnection: close\r\n\r\ndenied");
    });
    const { listener, outcome } = await startProxy(await startApp(app));
    const client = new WebSocket(`ws://${host}:${listener.port}/`);
    const [error] = await event(client, "error");
    expect(String(error)).toContain("403");
    expect(await outcome).toEqual({ status: 403, responseBytes: 6 });
  });

  it("ends the other side when one side breaks", async () => {
    const server = createServer();
    new WebSocketServer({ server }).on("connection", (_socket, req) => {
      setImmediate(() => req.socket.resetAndDestroy());
    });
    const { listener, outcome } = await startProxy(await startApp(server));
    const client = new WebSocket(`ws://${host}:${listener.port}/`);
    await event(client, "close");
    expect((await outcome).status).toBe(101);
  });

  it("says that nothing was sent when nobody listens", async () => {
    const app = createServer();
    const port = await startApp(app);
    await new Promise(resolve => app.close(resolve));
    const { listener, outcome } = await startProxy(port);
    const client = new WebSocket(`ws://${host}:${listener.port}/`);
    client.on("error", () => undefined);
    const error: unknown = await outcome.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UpstreamError);
    expect((error as UpstreamError).sent).toBe(false);
    client.terminate();
  });

  it("gives up on an app that does not answer, and leaves an upgraded connection alone", async () => {
    const clock = new FakeClock();
    const app = createServer();
    const { promise: arrived, resolve } = Promise.withResolvers<void>();
    app.on("upgrade", () => resolve());
    const { listener, outcome } = await startProxy(await startApp(app), { clock, responseStartMs: 5000 });
    const client = new WebSocket(`ws://${host}:${listener.port}/`);
    client.on("error", () => undefined);
    await arrived;
    clock.advance(5000);
    await expect(outcome).rejects.toThrow(UpstreamTimeoutError);
    client.terminate();
  });

  it("cancels at the app when the client leaves first", async () => {
    const app = createServer();
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
    app.on("upgrade", (_req, socket) => {
      socket.on("error", () => undefined);
      socket.on("end", () => resolve());
      socket.resume();
      arrive();
    });
    const { listener, outcome } = await startProxy(await startApp(app));
    const client = new WebSocket(`ws://${host}:${listener.port}/`);
    client.on("error", () => undefined);
    await arrived;
    client.terminate();
    await expect(outcome).rejects.toThrow(ClientGoneError);
    await closed;
  });
});
