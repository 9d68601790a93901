import { KubeError, type KubeClient } from "../watch/kube-client.ts";

interface Stored {
  readonly metadata: { readonly name: string; readonly namespace: string; readonly labels?: Record<string, string> };
}

interface Watcher {
  readonly path: string;
  readonly labels: readonly string[];
  push(event: unknown): void;
  fail(error: Error): void;
}

/** An API server in memory: collections by path, watches that can be broken. */
export class FakeApi implements KubeClient {
  readonly #collections = new Map<string, Map<string, Stored>>();
  readonly #watchers = new Set<Watcher>();
  #version = 1;
  /** While set, every request fails. */
  isAway = false;
  lists = 0;
  closed = false;
  /** Answers objects that are posted. */
  onCreate: (path: string, object: object) => unknown = path => {
    throw new KubeError(`POST ${path}: 404`, 404);
  };

  apply(path: string, object: Stored): void {
    const collection = this.#collection(path);
    const key = `${object.metadata.namespace}/${object.metadata.name}`;
    const type = collection.has(key) ? "MODIFIED" : "ADDED";
    const versioned = this.#stamp(object);
    collection.set(key, versioned);
    this.#emit(path, type, versioned);
  }

  delete(path: string, namespace: string, name: string): void {
    const collection = this.#collection(path);
    const object = collection.get(`${namespace}/${name}`);
    if (object === undefined) return;
    collection.delete(`${namespace}/${name}`);
    this.#emit(path, "DELETED", this.#stamp(object));
  }

  /** Ends all watches with an error, as when the server dies. */
  breakWatches(error: Error = new KubeError("connection reset", 0)): void {
    for (const watcher of [...this.#watchers]) watcher.fail(error);
  }

  get watching(): number {
    return this.#watchers.size;
  }

  async list(path: string, query: Readonly<Record<string, string>>): Promise<unknown> {
    if (this.isAway) throw new KubeError("connect ECONNREFUSED", 0);
    this.lists++;
    const items = [...this.#collection(path).values()].filter(item => selects(labelsOf(query), item));
    return { metadata: { resourceVersion: String(this.#version) }, items };
  }

  async *watch(
    path: string,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): AsyncGenerator<unknown, void, void> {
    if (this.isAway) throw new KubeError("connect ECONNREFUSED", 0);
    const events: unknown[] = [];
    let failure: Error | undefined;
    let wake: () => void = () => undefined;
    const watcher: Watcher = {
      path,
      labels: labelsOf(query),
      push(event) {
        events.push(event);
        wake();
      },
      fail(error) {
        failure = error;
        wake();
      },
    };
    this.#watchers.add(watcher);
    signal.addEventListener("abort", () => watcher.fail(new KubeError("aborted", 0)));
    try {
      for (;;) {
        while (events.length > 0) yield events.shift();
        if (failure !== undefined) throw failure;
        await new Promise<void>(resolve => (wake = resolve));
      }
    } finally {
      this.#watchers.delete(watcher);
    }
  }

  async create(path: string, object: object): Promise<unknown> {
    if (this.isAway) throw new KubeError("connect ECONNREFUSED", 0);
    return this.onCreate(path, object);
  }

  async close(): Promise<void> {
    this.closed = true;
  }

  #collection(path: string): Map<string, Stored> {
    let collection = this.#collections.get(path);
    if (collection === undefined) this.#collections.set(path, (collection = new Map<string, Stored>()));
    return collection;
  }

  #stamp(object: Stored): Stored {
    return { ...object, metadata: { ...object.metadata, ...{ resourceVersion: String(++this.#version) } } };
  }

  #emit(path: string, type: string, object: Stored): void {
    for (const watcher of this.#watchers)
      if (watcher.path === path && selects(watcher.labels, object)) watcher.push({ type, object });
  }
}

function labelsOf(query: Readonly<Record<string, string>>): string[] {
  // Commas between brackets separate values, the others terms.
  const selector = query["labelSelector"]?.replace(/\(.*?\)/g, values => values.replaceAll(",", "|"));
  return selector?.split(",") ?? [];
}

function selects(terms: readonly string[], { metadata }: Stored): boolean {
  return terms.every(term => {
    const oneOf = /^(\S+) in \((.*)\)$/.exec(term);
    const [key = "", value] = oneOf === null ? term.split("=") : oneOf.slice(1);
    const label = metadata.labels?.[key];
    if (value === undefined) return label !== undefined;
    return value.split("|").includes(label ?? "");
  });
}
