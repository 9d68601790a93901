import { Counter, Gauge, type Registry } from "prom-client";
import type { ChangeHandler } from "./capability.ts";
import type { Clock } from "./clock.ts";
import type { KubeApi } from "./kube-api.ts";
import type { ComponentLogger } from "./logging.ts";
import { ObjectCache } from "./object-cache.ts";
import { runReflector } from "./reflector.ts";
import { resourcePath, type ResourceKind } from "./resource.ts";
import type { KubeObject, Lister } from "./types.ts";

export interface InformersOptions {
  readonly api: KubeApi;
  readonly systemNamespace: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: ComponentLogger;
  readonly metrics: Registry;
}

interface Informer {
  readonly kind: ResourceKind;
  readonly path: string;
  readonly cache: ObjectCache;
  synced: boolean;
}

/** One cache and one watch per kind and scope, shared by all who ask. Kinds are asked for before `start`. */
export class SharedInformers {
  readonly #options: InformersOptions;
  readonly #informers = new Map<string, Informer>();
  readonly #waiting: (() => void)[] = [];
  readonly #relists: Counter<"kind">;
  readonly #failures: Counter<"kind">;
  #started = false;

  constructor(options: InformersOptions) {
    this.#options = options;
    this.#relists = new Counter({
      name: "fairway_informer_relists_total",
      help: "Times a collection was listed again because its watch was too old",
      labelNames: ["kind"],
      registers: [options.metrics],
    });
    this.#failures = new Counter({
      name: "fairway_informer_failures_total",
      help: "Lists and watches that failed",
      labelNames: ["kind"],
      registers: [options.metrics],
    });
    const informers = this.#informers;
    new Gauge({
      name: "fairway_informer_objects",
      help: "Objects in memory",
      labelNames: ["kind"],
      registers: [options.metrics],
      collect() {
        this.reset();
        for (const { kind, cache } of informers.values()) this.inc({ kind: kind.kind }, cache.size);
      },
    });
  }

  lister<T extends KubeObject>(kind: ResourceKind<T>): Lister<T> {
    return this.#informer(kind).cache as unknown as Lister<T>;
  }

  onChange<T extends KubeObject>(kind: ResourceKind<T>, handler: ChangeHandler<T>): void {
    this.#informer(kind).cache.onChange(handler as unknown as ChangeHandler<KubeObject>);
  }

  /** Tells one handler of all that is there, as if it had just been added. */
  replay(kind: ResourceKind, handler: ChangeHandler<KubeObject>): void {
    for (const object of this.#informer(kind).cache.list()) handler(object, "added");
  }

  /** The cached object of any kind that is watched whole; `undefined` also when its kind is not watched. */
  cached(apiVersion: string, kind: string, key: { readonly namespace?: string | undefined; readonly name: string }) {
    for (const informer of this.#informers.values()) {
      if (informer.kind.apiVersion !== apiVersion || informer.kind.kind !== kind) continue;
      const found = informer.cache.get(key);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Starts all watches; they run until the signal aborts. */
  start(signal: AbortSignal): void {
    this.#started = true;
    for (const informer of this.#informers.values()) {
      const { api, clock, random, log } = this.#options;
      const name = { kind: informer.kind.kind };
      void runReflector(
        {
          api,
          clock,
          random,
          log,
          kind: informer.kind,
          path: informer.path,
          query: { labelSelector: informer.kind.scope.labelSelector, fieldSelector: informer.kind.scope.fieldSelector },
          cache: informer.cache,
          onSynced: () => {
            informer.synced = true;
            if (this.hasSynced()) for (const wake of this.#waiting.splice(0)) wake();
          },
          onRelist: () => this.#relists.inc(name),
          onFailure: () => this.#failures.inc(name),
        },
        signal,
      );
    }
  }

  /** True when each kind has been listed completely once. */
  hasSynced(): boolean {
    return this.#started && [...this.#informers.values()].every(informer => informer.synced);
  }

  /** Kinds that are not listed yet: for messages. */
  unsynced(): readonly string[] {
    return [...this.#informers.values()].filter(informer => !informer.synced).map(informer => informer.path);
  }

  /** Resolves when all kinds are listed, or when the signal aborts. */
  async whenSynced(signal: AbortSignal): Promise<void> {
    if (this.hasSynced() || signal.aborted) return;
    await new Promise<void>(resolve => {
      this.#waiting.push(resolve);
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
  }

  #informer(kind: ResourceKind): Informer {
    const path = resourcePath(kind, kind.scope.namespace === "system" ? this.#options.systemNamespace : undefined);
    const id = `${path}?${kind.scope.labelSelector ?? ""}&${kind.scope.fieldSelector ?? ""}`;
    const known = this.#informers.get(id);
    if (known !== undefined) return known;
    if (this.#started) throw new Error(`kind asked for after start: ${path}`);
    const cache = new ObjectCache(error =>
      this.#options.log.error({ kind: kind.kind, error }, "a handler of changes failed"),
    );
    const informer: Informer = { kind, path, cache, synced: false };
    this.#informers.set(id, informer);
    return informer;
  }
}
