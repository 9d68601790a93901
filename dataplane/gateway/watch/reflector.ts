import { z } from "zod";
import type { Clock } from "../../shared/clock.ts";
import type { Logger } from "../../shared/logger.ts";
import { KubeError, type KubeClient } from "./kube-client.ts";

/** A collection of the API server. */
export interface WatchedCollection {
  /** For messages and metrics. */
  readonly kind: string;
  readonly path: string;
  readonly labelSelector?: string;
  /** A collection that the server does not have is empty, and asked for again now and then. */
  readonly optional?: boolean;
}

/** What follows a collection. Called in order; must not throw. */
export interface CollectionHandler {
  /** The whole collection, at first and whenever events were missed. */
  replace(objects: readonly KubeObject[]): void;
  upsert(object: KubeObject): void;
  remove(object: KubeObject): void;
}

/** An object as it comes; its handler looks into it. */
export interface KubeObject {
  readonly metadata: { readonly name: string; readonly namespace: string };
}

export interface ReflectorOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly logger: Logger;
  readonly collection: WatchedCollection;
  readonly handler: CollectionHandler;
  readonly onFailure: () => void;
}

const PAGE = "500";
const FIRST_RETRY_MS = 200;
const LONGEST_RETRY_MS = 10_000;
const ABSENT_RETRY_MS = 30_000;
/** The server ends a watch after this long and up to twice as long. */
const WATCH_SECONDS = 300;

const objectSchema = z.looseObject({
  metadata: z.looseObject({
    name: z.string(),
    namespace: z.string().default(""),
    resourceVersion: z.string().default(""),
  }),
});
const listSchema = z.object({
  metadata: z.object({ resourceVersion: z.string(), continue: z.string().optional() }),
  items: z.array(objectSchema).nullish(),
});
const eventSchema = z.discriminatedUnion("type", [
  z.object({ type: z.enum(["ADDED", "MODIFIED", "DELETED"]), object: objectSchema }),
  z.object({ type: z.literal("BOOKMARK"), object: z.object({ metadata: z.object({ resourceVersion: z.string() }) }) }),
  z.object({
    type: z.literal("ERROR"),
    object: z.object({ code: z.number().default(0), message: z.string().default("") }),
  }),
]);

const GONE = 410;
const NOT_FOUND = 404;

/**
 * Follows a collection until the signal aborts: lists it, then watches from there. A watch that breaks goes on from the last
 * version seen, one whose version is too old lists anew. While the server is away the handler keeps what it last heard.
 * Never rejects.
 *
 * @param onSynced called once, after the first complete list was handed over
 */
export async function reflect(options: ReflectorOptions, onSynced: () => void, signal: AbortSignal): Promise<void> {
  const { clock, collection, logger, random, handler } = options;
  let version: string | undefined;
  let isSynced = false;
  let failures = 0;
  const synced = (): void => {
    if (!isSynced) onSynced();
    isSynced = true;
  };
  while (!signal.aborted) {
    const startedMs = clock.nowMs();
    try {
      if (version === undefined) {
        version = await list(options, signal);
        synced();
      }
      failures = 0;
      for await (const newer of follow(options, version, signal)) version = newer;
      // A server that ends each watch at once is not asked in a tight loop.
      await pause(clock, startedMs + FIRST_RETRY_MS - clock.nowMs(), signal);
    } catch (error) {
      if (signal.aborted) return;
      const status = error instanceof KubeError ? error.status : undefined;
      if (status === GONE) {
        version = undefined;
        continue;
      }
      if (status === NOT_FOUND && collection.optional === true) {
        version = undefined;
        handler.replace([]);
        synced();
        await pause(clock, ABSENT_RETRY_MS, signal);
        continue;
      }
      failures++;
      options.onFailure();
      const fullMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 20));
      const delayMs = fullMs / 2 + (fullMs / 2) * random();
      logger.warn({ err: error, kind: collection.kind, failures, delayMs: Math.round(delayMs) }, "watch failed");
      await pause(clock, delayMs, signal);
    }
  }
}

async function list({ client, collection, handler }: ReflectorOptions, signal: AbortSignal): Promise<string> {
  const objects: KubeObject[] = [];
  let more: string | undefined;
  for (;;) {
    const query = { ...selector(collection), limit: PAGE, ...(more === undefined ? {} : { continue: more }) };
    const page = listSchema.parse(await client.list(collection.path, query, signal));
    objects.push(...(page.items ?? []));
    more = page.metadata.continue;
    if (more === undefined || more === "") {
      handler.replace(objects);
      return page.metadata.resourceVersion;
    }
  }
}

/** Hands events over and gives the version reached. */
async function* follow(
  { client, collection, handler, random }: ReflectorOptions,
  resourceVersion: string,
  signal: AbortSignal,
): AsyncGenerator<string, void, void> {
  const timeoutSeconds = String(Math.round(WATCH_SECONDS * (1 + random())));
  const query = { ...selector(collection), resourceVersion, timeoutSeconds };
  for await (const raw of client.watch(collection.path, query, signal)) {
    const event = eventSchema.parse(raw);
    switch (event.type) {
      case "ERROR":
        throw new KubeError(`WATCH ${collection.path}: ${event.object.message}`, event.object.code);
      case "BOOKMARK":
        break;
      case "DELETED":
        handler.remove(event.object);
        break;
      case "ADDED":
      case "MODIFIED":
        handler.upsert(event.object);
        break;
    }
    yield event.object.metadata.resourceVersion;
  }
}

function selector({ labelSelector }: WatchedCollection): Record<string, string> {
  return labelSelector === undefined ? {} : { labelSelector };
}

function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  if (delayMs <= 0 || signal.aborted) return Promise.resolve();
  return new Promise(resolve => {
    const done = (): void => {
      clock.cancel(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = clock.after(delayMs, done);
    signal.addEventListener("abort", done, { once: true });
  });
}
