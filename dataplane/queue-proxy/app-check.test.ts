import { createServer, type Server } from "node:http";
import { createServer as createH2Server } from "node:http2";
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { appCheck } from "./app-check.ts";

const host = "127.0.0.1";
const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0)) close();
});

async function listen(server: TcpServer): Promise<number> {
  await new Promise<void>(resolve => server.listen(0, host, resolve));
  open.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

async function refusedPort(): Promise<number> {
  const server = createTcpServer();
  const port = await listen(server);
  await new Promise(resolve => server.close(resolve));
  open.pop();
  return port;
}

describe("appCheck", () => {
  it("tcp: ready when the port accepts", async () => {
    const port = await listen(createTcpServer(socket => socket.destroy()));
    expect(await appCheck({ kind: "tcp", host, port })(1000)).toBeUndefined();
    const closed = await refusedPort();
    expect(await appCheck({ kind: "tcp", host, port: closed })(1000)).toContain("ECONNREFUSED");
  });

  describe("http", () => {
    const check = (port: number, timeoutMs = 1000) =>
      appCheck({ kind: "http", host, port, path: "/healthz?a=1", tls: false, headers: { "X-A": "b" } })(timeoutMs);

    it.each([
      { status: 200, problem: undefined },
      { status: 302, problem: undefined },
      { status: 404, problem: /status 404/ },
      { status: 503, problem: /status 503/ },
    ])("status $status", async ({ status, problem }) => {
      let seen: string | undefined;
      const server: Server = createServer((req, res) => {
        seen = `${req.method} ${req.url} ${String(req.headers["x-a"])} ${req.headers["user-agent"]}`;
        res.writeHead(status).end("x");
      });
      const answer = await check(await listen(server));
      if (problem === undefined) expect(answer).toBeUndefined();
      else expect(answer).toMatch(problem);
      expect(seen).toBe("GET /healthz?a=1 b kube-probe/1");
    });

    it("gives up in time", async () => {
      const port = await listen(createTcpServer(socket => open.push(() => socket.destroy())));
      expect(await check(port, 20)).toMatch(/no answer within 20 ms/);
    });
  });

  describe("grpc", () => {
    /** A server of the health service that answers with this status, and the frame of the request it got. */
    async function health(answer: Buffer, grpcStatus: string): Promise<{ port: number; got: Buffer[] }> {
      const got: Buffer[] = [];
      const server = createH2Server();
      server.on("stream", stream => {
        stream.on("data", (part: Buffer) => got.push(part));
        stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
        stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": grpcStatus }));
        stream.end(answer);
      });
      return { port: await listen(server), got };
    }

    it.each([
      { title: "serving", answer: [0, 0, 0, 0, 2, 0x08, 1], grpcStatus: "0", problem: undefined },
      { title: "not serving", answer: [0, 0, 0, 0, 2, 0x08, 2], grpcStatus: "0", problem: /NOT_SERVING/ },
      { title: "unknown", answer: [0, 0, 0, 0, 0], grpcStatus: "0", problem: /UNKNOWN/ },
      { title: "no such service", answer: [], grpcStatus: "5", problem: /grpc-status 5/ },
    ])("$title", async ({ answer, grpcStatus, problem }) => {
      const { port, got } = await health(Buffer.from(answer), grpcStatus);
      const result = await appCheck({ kind: "grpc", host, port, service: "echo" })(1000);
      if (problem === undefined) expect(result).toBeUndefined();
      else expect(result).toMatch(problem);
      expect(Buffer.concat(got)).toEqual(Buffer.from([0, 0, 0, 0, 6, 0x0a, 4, ...Buffer.from("echo")]));
    });

    it("says when nobody listens", async () => {
      const port = await refusedPort();
      expect(await appCheck({ kind: "grpc", host, port, service: "" })(1000)).toMatch(/ECONNREFUSED/);
    });
  });
});
