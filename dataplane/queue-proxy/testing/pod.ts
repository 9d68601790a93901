import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createH2Server, type Http2Server } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { pino } from "pino";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { parseConfig } from "../config.ts";
import { type QueueProxy, startQueueProxy } from "../start.ts";

/** A pod as a test sees it: an app on a real port and the queue-proxy before it, with time in the test's hand. */
export interface TestPod {
  readonly clock: FakeClock;
  readonly queueProxy: QueueProxy;
  readonly appPort: number;
  /** `http://127.0.0.1:<port of the queue-proxy>`. */
  readonly url: string;
  /** Ends the app and its connections, as a crash does. */
  crashApp(): Promise<void>;
  /** The app is there again, on the port it had. */
  restartApp(): Promise<void>;
  /** Lets time pass in small steps, with the real I/O between them. */
  pass(ms: number): Promise<void>;
  /** Lets I/O and, where given, time go on until something holds. */
  until(holds: () => boolean | Promise<boolean>, stepMs?: number): Promise<void>;
  close(): Promise<void>;
}

export interface TestPodOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Handles the app's requests; ready as soon as it listens. */
  readonly app: RequestListener;
  readonly protocol?: "http1" | "h2c";
  /** For what a request listener cannot do. */
  readonly prepare?: (server: Server | Http2Server) => void;
  /** False: the app does not listen until `restartApp`. */
  readonly listening?: boolean;
}

const HOST = "127.0.0.1";
const PATIENCE_MS = 10_000;

export async function startTestPod(options: TestPodOptions): Promise<TestPod> {
  const protocol = options.protocol ?? "http1";
  const sockets = new Set<Socket>();
  const makeApp = (): Server | Http2Server => {
    const server = protocol === "http1" ? createServer(options.app) : createH2Server(options.app as never);
    server.on("connection", (socket: Socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
    });
    options.prepare?.(server);
    return server;
  };
  const listen = (server: Server | Http2Server, port: number): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, HOST, resolve);
    });
  let app = makeApp();
  await listen(app, 0);
  const appPort = (app.address() as AddressInfo).port;
  const crashApp = (): Promise<void> =>
    new Promise(resolve => {
      app.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
  if (options.listening === false) await crashApp();

  const clock = new FakeClock();
  const config = parseConfig({
    CONTAINER_CONCURRENCY: "0",
    USER_PORT: String(appPort),
    USER_PROTOCOL: protocol,
    REVISION_TIMEOUT_SECONDS: "300",
    SERVING_NAMESPACE: "default",
    SERVING_REVISION: "hello-00001",
    SERVING_POD: "hello-00001-deployment-a",
    ...options.env,
  });
  const anyPort = { http: 0, h2c: 0, admin: 0, metrics: 0 };
  const queueProxy = await startQueueProxy({ ...config, ports: anyPort }, clock, pino({ level: "silent" }));
  const breathe = (): Promise<void> => new Promise(resolve => setImmediate(resolve));

  const pod: TestPod = {
    clock,
    queueProxy,
    appPort,
    url: `http://${HOST}:${queueProxy.ports.http}`,
    crashApp,
    restartApp: async () => {
      app = makeApp();
      await listen(app, appPort);
    },
    pass: async ms => {
      for (let passed = 0; passed < ms; passed += 25) {
        clock.advance(Math.min(25, ms - passed));
        await breathe();
      }
    },
    until: async (holds, stepMs = 0) => {
      for (const startMs = performance.now(); performance.now() - startMs < PATIENCE_MS; ) {
        if (await holds()) return;
        clock.advance(stepMs);
        await breathe();
      }
      throw new Error("what was waited for did not come about");
    },
    close: async () => {
      queueProxy.drain();
      let ended = false;
      void queueProxy.ended.then(() => (ended = true));
      for (const socket of sockets) socket.destroy();
      await pod.until(() => ended, 100);
      await crashApp();
    },
  };
  return pod;
}
