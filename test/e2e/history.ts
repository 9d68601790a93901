import { onTestFinished } from "vitest";
import { conditions, type AnyObject } from "../../hack/kit/kube.ts";
import { SERVING, kube } from "./support.ts";

/** Every change of an object in the order in which the API server made it; nothing that was there for a moment is missed. */
interface Change {
  /**
   * The resource version as a number. All kinds of the test cluster are in one etcd, which counts changes over all of them: what
   * has the smaller number was first, also between kinds.
   */
  readonly version: number;
  readonly gone: boolean;
  readonly object: AnyObject;
}

type Kind = "Pod" | "Deployment" | "Revision" | "Route" | "Service";
const API_VERSIONS: Readonly<Record<Kind, string>> = {
  Pod: "v1",
  Deployment: "apps/v1",
  Revision: SERVING,
  Route: SERVING,
  Service: SERVING,
};

interface Waiter {
  readonly look: () => boolean;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/**
 * What happens to the objects of a namespace from `begin` on, by watches. A look every so often misses a state that lasts shorter
 * than that, and the status of one object tells late of another; here both can be asked for afterwards.
 */
export class History {
  readonly #changes = new Map<Kind, Change[]>();
  readonly #waiters = new Set<Waiter>();
  #broken: Error | undefined;

  /** Ends with the test. */
  static async begin(namespace: string, kinds: readonly Kind[]): Promise<History> {
    const history = new History();
    const cluster = kube();
    const end = new AbortController();
    onTestFinished(() => end.abort());
    for (const kind of kinds) {
      const apiVersion = API_VERSIONS[kind];
      const since = await cluster.version(apiVersion, kind, namespace);
      history.#changes.set(kind, []);
      history.#follow(kind, cluster.watch(apiVersion, kind, namespace, end.signal, since)).catch((error: unknown) => {
        if (!end.signal.aborted) history.#break(error instanceof Error ? error : new Error(String(error)));
      });
    }
    return history;
  }

  /** Waits until `matches` holds; looks after each change. */
  async until(what: string, matches: () => boolean, timeoutMs = 90_000): Promise<void> {
    if (this.#broken !== undefined) throw this.#broken;
    if (matches()) return;
    let waiter: Waiter | undefined;
    let timer: NodeJS.Timeout | undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        waiter = { look: matches, resolve, reject };
        this.#waiters.add(waiter);
        timer = setTimeout(() => reject(new Error(`timed out after ${timeoutMs} ms waiting for ${what}`)), timeoutMs);
      });
    } finally {
      clearTimeout(timer);
      if (waiter !== undefined) this.#waiters.delete(waiter);
    }
  }

  /** What `read` makes of the objects that there are, as far as the watch has told. */
  now<T>(kind: Kind, read: (objects: readonly AnyObject[]) => T): T {
    return read([...this.#states(kind)].at(-1)?.objects ?? []);
  }

  /** The version of the first change after which `matches` holds for the objects that there are; undefined: none yet. */
  when(kind: Kind, matches: (objects: readonly AnyObject[]) => boolean): number | undefined {
    for (const { version, objects } of this.#states(kind)) if (matches(objects)) return version;
    return undefined;
  }

  /** Waits for that change. */
  async first(
    kind: Kind,
    what: string,
    matches: (objects: readonly AnyObject[]) => boolean,
    timeoutMs?: number,
  ): Promise<number> {
    await this.until(what, () => this.when(kind, matches) !== undefined, timeoutMs);
    return this.when(kind, matches) ?? Number.NaN;
  }

  /** The largest of `count` over all states; 0 before the first change. */
  most(kind: Kind, count: (objects: readonly AnyObject[]) => number): number {
    let most = 0;
    for (const { objects } of this.#states(kind)) most = Math.max(most, count(objects));
    return most;
  }

  *#states(kind: Kind): Generator<{ readonly version: number; readonly objects: readonly AnyObject[] }, void, void> {
    const present = new Map<string, AnyObject>();
    for (const { version, gone, object } of this.#changes.get(kind) ?? []) {
      const name = object.metadata?.name ?? "";
      if (gone) present.delete(name);
      else present.set(name, object);
      yield { version, objects: [...present.values()] };
    }
  }

  async #follow(
    kind: Kind,
    events: AsyncIterable<{ readonly type: string; readonly object: AnyObject }>,
  ): Promise<void> {
    for await (const { type, object } of events) {
      if (type === "BOOKMARK") continue;
      if (type === "ERROR") throw new Error(`watch of kind ${kind}: ${JSON.stringify(object)}`);
      const version = Number(object.metadata?.resourceVersion);
      this.#changes.get(kind)?.push({ version, gone: type === "DELETED", object });
      for (const waiter of this.#waiters) if (waiter.look()) waiter.resolve();
    }
    throw new Error(`the watch of kind ${kind} has ended`);
  }

  #break(error: Error): void {
    this.#broken = error;
    for (const { reject } of this.#waiters) reject(error);
  }
}

/** The pods of a revision that are not being deleted. */
export const livePods =
  (revision: string) =>
  (objects: readonly AnyObject[]): readonly AnyObject[] =>
    objects.filter(
      ({ metadata }) =>
        metadata?.labels?.["serving.knative.dev/revision"] === revision && metadata.deletionTimestamp === undefined,
    );

/** How many of them are ready. */
export const readyPods =
  (revision: string) =>
  (objects: readonly AnyObject[]): number =>
    livePods(revision)(objects).filter(pod => hasCondition(pod, "Ready")).length;

/** `.spec.replicas` of a revision's Deployment; undefined while there is none. */
export const replicasOf =
  (revision: string) =>
  (objects: readonly AnyObject[]): number | undefined =>
    objects.find(({ metadata }) => metadata?.name === `${revision}-deployment`)?.spec?.["replicas"] as
      | number
      | undefined;

/** Whether the Route of that name gives a revision a share of its requests. */
export const leadsTo =
  (route: string, revision: string) =>
  (objects: readonly AnyObject[]): boolean =>
    objects
      .filter(({ metadata }) => metadata?.name === route)
      .flatMap(({ status }) => (status?.["traffic"] ?? []) as readonly { revisionName?: string; percent?: number }[])
      .some(({ revisionName, percent = 0 }) => revisionName === revision && percent > 0);

/** Whether the object of that name has the condition, true. */
export const isTrue =
  (name: string, condition: string) =>
  (objects: readonly AnyObject[]): boolean =>
    objects.some(object => object.metadata?.name === name && hasCondition(object, condition));

function hasCondition(object: AnyObject, condition: string): boolean {
  return conditions(object).some(({ type, status }) => type === condition && status === "True");
}
