import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { Readable } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import type { ResponseReceiver, UpstreamRequest } from "../shared/http/upstream.ts";
import { HttpUpstream } from "./http-upstream.ts";

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** A bare server: gives what it received to `answer`, whose text is sent back. */
async function startServer(onSocket: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createTcpServer(socket => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    onSocket(socket);
  });
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}

function upstream(port: number, idleMs = 1000): HttpUpstream {
  const made = new HttpUpstream("127.0.0.1", port, { connectTimeoutMs: 1000, idleMs, maxHeaderBytes: 65_536 });
  closers.push(() => made.close());
  return made;
}

const get: UpstreamRequest = { method: "GET", target: "/", authority: "a.example.com", headers: [] };

/** Sends and tells everything that the receiver was told. */
function send(to: HttpUpstream, request: UpstreamRequest, changes: Partial<ResponseReceiver> = {}) {
  const events: string[] = [];
  const { promise: over, resolve } = Promise.withResolvers<string[]>();
  const call = to.send(request, {
    onSending: () => events.push("sending"),
    onInformational: status => events.push(`informational ${status}`),
    onResponse: status => events.push(`response ${status}`),
    onData: chunk => events.push(`data ${chunk.toString()}`) > 0,
    onEnd: trailers => {
      events.push(`end ${trailers.join("=")}`.trim());
      resolve(events);
    },
    onError: error => {
      events.push(`error ${error.message}`);
      resolve(events);
    },
    ...changes,
  });
  return { call, events, over };
}

describe("HttpUpstream", () => {
  it("tells of every part of an answer in order", async () => {
    const port = await startServer(socket =>
      socket.once("data", () =>
        socket.end(
          "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" +
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-T: 1\r\n\r\n",
        ),
      ),
    );
    expect(await send(upstream(port), get).over).toEqual([
      ...["sending", "informational 103", "response 200", "data hi", "end X-T=1"],
    ]);
  });

  it.each([
    {
      title: "a body of unknown length, any method",
      method: "DELETE",
      body: "x",
      headers: [],
      want: { te: "chunked" },
    },
    {
      title: "a body of known length",
      method: "POST",
      body: "x",
      headers: ["Content-Length", "1"],
      want: { length: "1" },
    },
    { title: "no body where one is usual", method: "POST", headers: [], want: { length: "0" } },
    { title: "no body", method: "GET", headers: [], want: {} },
  ])("frames $title", async ({ method, body, headers, want }) => {
    let seen: unknown;
    let received = "";
    const server = createServer((req: IncomingMessage, res) => {
      seen = { length: req.headers["content-length"], te: req.headers["transfer-encoding"] };
      req.on("data", (chunk: Buffer) => (received += chunk.toString()));
      req.on("end", () => res.end());
    });
    const port = await startServer(socket => server.emit("connection", socket));
    const request = { ...get, method, headers, ...(body === undefined ? {} : { body: Readable.from([body]) }) };
    expect((await send(upstream(port), request).over).at(-1)).toBe("end");
    expect(seen).toEqual({ length: undefined, te: undefined, ...want });
    expect(received).toBe(body ?? "");
  });

  it("uses a connection again, and lets go of one that is idle", async () => {
    let connections = 0;
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const server = createServer((_req, res) => res.end("ok"));
    const port = await startServer(socket => {
      connections++;
      socket.once("close", () => resolve());
      server.emit("connection", socket);
    });
    const patient = upstream(port, 60_000);
    for (let i = 0; i < 3; i++) await send(patient, get).over;
    expect(connections).toBe(1);
    await send(upstream(port, 1), get).over;
    await closed;
  });

  it("leaves the body alone when no connection is made", async () => {
    const port = await startServer(() => undefined);
    closers.splice(0).forEach(close => close());
    const body = new Readable({ read: () => expect.unreachable("the body was read") });
    const { over } = send(upstream(port), { ...get, method: "POST", body });
    expect((await over)[0]).toMatch(/^error .*ECONNREFUSED/);
  });

  it("tells of an answer that breaks off", async () => {
    const port = await startServer(socket =>
      socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhi")),
    );
    expect(await send(upstream(port), get).over).toEqual(["sending", "response 200", "data hi", "error aborted"]);
  });

  it("ends the connection of a request that is aborted, and tells the reason", async () => {
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const port = await startServer(socket => {
      socket.resume();
      socket.on("end", () => resolve());
    });
    const { promise: sending, resolve: sent } = Promise.withResolvers<void>();
    const { call, over } = send(upstream(port), get, { onSending: sent });
    await sending;
    call.abort(new Error("enough"));
    expect(await over).toEqual(["error enough"]);
    await ended;
  });

  it("reports fields that cannot be sent as an error of the request", async () => {
    const port = await startServer(() => undefined);
    const { over } = send(upstream(port), { ...get, headers: ["bad name", "x"] });
    expect((await over)[0]).toMatch(/^error Header name must be a valid HTTP token/);
  });
});
