import { createServer, type Server } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

const RETRY_INTERVAL_MS = 200;

export class LockTimeoutError extends Error {
  readonly code = "LOCK_TIMEOUT";
}

export interface LockOptions {
  readonly timeoutMs: number;
  /** Called once if the lock is not free at the first try. */
  readonly onWait?: () => void;
  readonly signal?: AbortSignal;
}

/**
 * Runs `task` while no other process of this machine holds the lock `name`. The lock is a listening socket in Linux's
 * abstract namespace, which the kernel frees when its holder ends, however it ends.
 * @throws LockTimeoutError
 */
export async function withLock<T>(name: string, options: LockOptions, task: () => Promise<T>): Promise<T> {
  const deadlineMs = Date.now() + options.timeoutMs;
  let waiting = false;
  let holder = await tryListen(name);
  while (holder === undefined) {
    if (Date.now() > deadlineMs) {
      throw new LockTimeoutError(`lock ${name}: held by another process for ${options.timeoutMs} ms`);
    }
    if (!waiting) options.onWait?.();
    waiting = true;
    await delay(RETRY_INTERVAL_MS, undefined, options.signal === undefined ? {} : { signal: options.signal });
    holder = await tryListen(name);
  }
  try {
    return await task();
  } finally {
    holder.close();
  }
}

async function tryListen(name: string): Promise<Server | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<Server | undefined>();
  const server = createServer(socket => socket.destroy());
  server.once("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EADDRINUSE") resolve(undefined);
    else reject(error);
  });
  server.listen(`\0fairway-cluster/${name}`, () => resolve(server));
  return promise;
}
