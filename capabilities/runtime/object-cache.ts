import { keyOf, keyText } from "./resource.ts";
import type { ChangeHandler, ChangePhase } from "./capability.ts";
import type { KubeObject, Lister, ObjectKey } from "./types.ts";

/** Labels that have an index: those that objects find each other by. */
const INDEXED_LABEL = /^(serving\.knative\.dev\/|kubernetes\.io\/service-name$)/;

/**
 * The objects of one kind in memory, with indices by namespace, owner and label; a reflector fills it. Handlers are called
 * after the cache has changed, in order; one that throws is reported and does not keep the others from being called.
 */
export class ObjectCache<T extends KubeObject = KubeObject> implements Lister<T> {
  readonly #objects = new Map<string, T>();
  readonly #byNamespace = new Index();
  readonly #byOwner = new Index();
  readonly #byLabel = new Index();
  readonly #handlers: ChangeHandler<T>[] = [];
  readonly #onHandlerError: (error: unknown) => void;

  constructor(onHandlerError: (error: unknown) => void) {
    this.#onHandlerError = onHandlerError;
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: ObjectKey): T | undefined {
    return this.#objects.get(keyText(key));
  }

  list(
    query: {
      readonly namespace?: string | undefined;
      readonly labels?: Readonly<Record<string, string>> | undefined;
    } = {},
  ): readonly T[] {
    const labels = Object.entries(query.labels ?? {});
    const sets = labels
      .filter(([name]) => INDEXED_LABEL.test(name))
      .map(([name, value]) => this.#byLabel.of(`${name}=${value}`));
    if (query.namespace !== undefined) sets.push(this.#byNamespace.of(query.namespace));
    const smallest = sets.reduce<ReadonlySet<string> | undefined>(
      (least, set) => (least === undefined || set.size < least.size ? set : least),
      undefined,
    );
    const candidates = smallest === undefined ? [...this.#objects.values()] : this.#resolve(smallest);
    return candidates.filter(
      object =>
        (query.namespace === undefined || object.metadata?.namespace === query.namespace) &&
        labels.every(([name, value]) => object.metadata?.labels?.[name] === value),
    );
  }

  ownedBy(uid: string): readonly T[] {
    return this.#resolve(this.#byOwner.of(uid));
  }

  /** Adds a handler and calls it for what is there already. */
  onChange(handler: ChangeHandler<T>): void {
    this.#handlers.push(handler);
    for (const object of this.#objects.values()) this.#call(handler, object, "added");
  }

  /** Takes over a whole list: what is not in it has been deleted. */
  replace(objects: readonly T[]): void {
    const present = new Set(objects.map(object => keyText(keyOf(object))));
    for (const [key, object] of this.#objects) if (!present.has(key)) this.remove(object);
    for (const object of objects) this.upsert(object);
  }

  /** Adds or changes one object; the same version again is no change. */
  upsert(object: T): void {
    const key = keyText(keyOf(object));
    const previous = this.#objects.get(key);
    if (previous !== undefined) {
      if (previous.metadata?.uid !== object.metadata?.uid) this.remove(previous);
      else if (sameVersion(previous, object)) return;
      else this.#unindex(key, previous);
    }
    const phase = this.#objects.has(key) ? "modified" : "added";
    this.#objects.set(key, object);
    this.#index(key, object);
    this.#tell(object, phase);
  }

  /** Takes one object out; its last state is told. */
  remove(object: T): void {
    const key = keyText(keyOf(object));
    const previous = this.#objects.get(key);
    if (previous === undefined) return;
    this.#objects.delete(key);
    this.#unindex(key, previous);
    this.#tell(object, "deleted");
  }

  #resolve(keys: ReadonlySet<string>): T[] {
    const found: T[] = [];
    for (const key of keys) {
      const object = this.#objects.get(key);
      if (object !== undefined) found.push(object);
    }
    return found;
  }

  #index(key: string, object: T): void {
    for (const [index, term] of this.#terms(object)) index.add(term, key);
  }

  #unindex(key: string, object: T): void {
    for (const [index, term] of this.#terms(object)) index.delete(term, key);
  }

  *#terms(object: T): Generator<readonly [Index, string]> {
    const { namespace, ownerReferences = [], labels = {} } = object.metadata ?? {};
    if (namespace !== undefined) yield [this.#byNamespace, namespace];
    for (const owner of ownerReferences) yield [this.#byOwner, owner.uid];
    for (const [name, value] of Object.entries(labels)) {
      if (INDEXED_LABEL.test(name)) yield [this.#byLabel, `${name}=${value}`];
    }
  }

  #tell(object: T, phase: ChangePhase): void {
    for (const handler of this.#handlers) this.#call(handler, object, phase);
  }

  #call(handler: ChangeHandler<T>, object: T, phase: ChangePhase): void {
    try {
      handler(object, phase);
    } catch (error) {
      this.#onHandlerError(error);
    }
  }
}

const NOTHING: ReadonlySet<string> = new Set();

/** Keys by a term; empty sets go. */
class Index {
  readonly #keys = new Map<string, Set<string>>();

  of(term: string): ReadonlySet<string> {
    return this.#keys.get(term) ?? NOTHING;
  }

  add(term: string, key: string): void {
    const keys = this.#keys.get(term);
    if (keys === undefined) this.#keys.set(term, new Set([key]));
    else keys.add(key);
  }

  delete(term: string, key: string): void {
    const keys = this.#keys.get(term);
    keys?.delete(key);
    if (keys?.size === 0) this.#keys.delete(term);
  }
}

function sameVersion(a: KubeObject, b: KubeObject): boolean {
  const version = a.metadata?.resourceVersion;
  return version !== undefined && version === b.metadata?.resourceVersion;
}
