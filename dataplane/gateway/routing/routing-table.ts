import { normalizeHost } from "../../../api/hosts.ts";
import type { CompiledRoute, RouteTarget } from "./compiled-route.ts";
import type { ListenerName } from "./hosts.ts";

/** All hosts at one moment; never changed, only replaced. */
export class RoutingTable<T> {
  readonly #tables: Readonly<Record<ListenerName, ReadonlyMap<string, RouteTarget<T>>>>;
  readonly #routes: readonly CompiledRoute<T>[];

  /** Where two Routes claim a host, the older one has it. */
  constructor(routes: Iterable<CompiledRoute<T>> = []) {
    this.#routes = [...routes].sort(
      (a, b) => compare(a.createdAt, b.createdAt) || compare(a.key, b.key) || compare(a.uid, b.uid),
    );
    const external = new Map<string, RouteTarget<T>>();
    const internal = new Map<string, RouteTarget<T>>();
    for (const route of this.#routes) {
      addAbsent(external, route.external);
      addAbsent(internal, route.internal);
    }
    this.#tables = { external, internal };
  }

  get routes(): readonly CompiledRoute<T>[] {
    return this.#routes;
  }

  /** @param authority the host as the client wrote it */
  find(listener: ListenerName, authority: string): RouteTarget<T> | undefined {
    const table = this.#tables[listener];
    return table.get(authority) ?? table.get(normalizeHost(authority));
  }

  /** Hosts and targets, for people. */
  *hosts(listener: ListenerName): Iterable<readonly [string, RouteTarget<T>]> {
    yield* this.#tables[listener];
  }
}

function addAbsent<K, V>(all: Map<K, V>, more: ReadonlyMap<K, V>): void {
  for (const [key, value] of more) if (!all.has(key)) all.set(key, value);
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
