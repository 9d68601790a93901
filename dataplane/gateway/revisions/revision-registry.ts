import type { GatewayReply } from "../../../api/wire/stats.ts";
import { RevisionBackend, type BackendOptions } from "./revision-backend.ts";
import { unknownRevision, type RevisionSettings, type SettingsDefaults } from "./revision-settings.ts";
import type { Endpoint } from "./pod.ts";

export type RegistryOptions = Omit<BackendOptions, "namespace" | "name" | "settings"> & {
  readonly defaults: SettingsDefaults;
  readonly onRemoved: (backend: RevisionBackend) => void;
};

/** The revisions this gateway knows of, from a Route, a Revision or an EndpointSlice, whichever comes first. */
export class RevisionRegistry {
  readonly #options: RegistryOptions;
  readonly #backends = new Map<string, RevisionBackend>();

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  find(key: string): RevisionBackend | undefined {
    return this.#backends.get(key);
  }

  all(): Iterable<RevisionBackend> {
    return this.#backends.values();
  }

  /** The backend of a revision, made if need be. */
  get(namespace: string, name: string): RevisionBackend {
    const key = `${namespace}/${name}`;
    let backend = this.#backends.get(key);
    if (backend === undefined) {
      const { defaults, onRemoved: _, ...options } = this.#options;
      backend = new RevisionBackend({ ...options, namespace, name, settings: unknownRevision(defaults) });
      this.#backends.set(key, backend);
    }
    return backend;
  }

  configure(namespace: string, name: string, settings: RevisionSettings): void {
    this.get(namespace, name).configure(settings);
  }

  setEndpoints(namespace: string, name: string, endpoints: readonly Endpoint[]): void {
    if (endpoints.length > 0 || this.#backends.has(`${namespace}/${name}`))
      this.get(namespace, name).setEndpoints(endpoints);
  }

  remove(namespace: string, name: string): void {
    const key = `${namespace}/${name}`;
    const backend = this.#backends.get(key);
    if (backend === undefined) return;
    this.#backends.delete(key);
    backend.remove();
    this.#options.onRemoved(backend);
  }

  gatewaysChanged(): void {
    for (const backend of this.#backends.values()) backend.gatewaysChanged();
  }

  /** The autoscaler's advice, the whole set: revisions it does not name have none. */
  advise(hints: GatewayReply["hints"]): void {
    for (const backend of this.#backends.values()) backend.advise(hints[backend.key]);
  }
}
