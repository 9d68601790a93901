import type { AnyObject, Kube } from "../../../hack/kit/kube.ts";

/** When something of a pod was first seen in the API, on the clock of `performance.now()`; NaN: never. */
export interface PodSighting {
  readonly created: number;
  readonly addressed: number;
  /** In an EndpointSlice, ready or not. */
  readonly sliced: number;
}

/** Follows pods, endpoints and deployments of a namespace and notes when each step was told. */
export class Sightings {
  readonly #created = new Map<string, number>();
  readonly #addressed = new Map<string, { readonly atMs: number; readonly address: string }>();
  readonly #sliced = new Map<string, number>();
  /** Deployments: moments at which pods were wanted after none were. */
  readonly #scaledUp = new Map<string, number[]>();
  readonly #replicas = new Map<string, number>();
  readonly #waiting = new Map<string, (address: string) => void>();

  static async of(kube: Kube, namespace: string, signal: AbortSignal): Promise<Sightings> {
    const sightings = new Sightings();
    const follow = async (apiVersion: string, kind: string, see: (object: AnyObject, atMs: number) => void) => {
      while (!signal.aborted)
        for await (const { object } of kube.watch(apiVersion, kind, namespace, signal)) see(object, performance.now());
    };
    for (const following of [
      follow("v1", "Pod", (pod, atMs) => sightings.#seePod(pod, atMs)),
      follow("apps/v1", "Deployment", (deployment, atMs) => sightings.#seeDeployment(deployment, atMs)),
      follow("discovery.k8s.io/v1", "EndpointSlice", (slice, atMs) => sightings.#seeSlice(slice, atMs)),
    ]) {
      following.catch((error: unknown) => {
        throw error;
      });
    }
    return sightings;
  }

  of(pod: string): PodSighting {
    return {
      created: this.#created.get(pod) ?? Number.NaN,
      addressed: this.#addressed.get(pod)?.atMs ?? Number.NaN,
      sliced: this.#sliced.get(pod) ?? Number.NaN,
    };
  }

  /** The first moment since `sinceMs` at which the Deployment had pods wanted. */
  scaledUp(deployment: string, sinceMs: number): number {
    return (this.#scaledUp.get(deployment) ?? []).find(atMs => atMs >= sinceMs) ?? Number.NaN;
  }

  /** Resolves as soon as the pod's address is told. */
  address(pod: string, timeoutMs: number): Promise<string> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`pod ${pod}: no address in ${timeoutMs} ms`)), timeoutMs);
      this.#waiting.set(pod, address => {
        clearTimeout(timer);
        resolve(address);
      });
    });
  }

  #seePod({ metadata, status }: AnyObject, atMs: number): void {
    const name = metadata?.name ?? "";
    if (!this.#created.has(name)) this.#created.set(name, atMs);
    const address = status?.["podIP"];
    if (typeof address !== "string" || this.#addressed.has(name)) return;
    this.#addressed.set(name, { atMs, address });
    this.#waiting.get(name)?.(address);
  }

  #seeDeployment({ metadata, spec }: AnyObject, atMs: number): void {
    const name = metadata?.name ?? "";
    const replicas = Number(spec?.["replicas"]);
    const before = this.#replicas.get(name) ?? 0;
    this.#replicas.set(name, replicas);
    if (before === 0 && replicas > 0) this.#scaledUp.set(name, [...(this.#scaledUp.get(name) ?? []), atMs]);
  }

  #seeSlice(slice: AnyObject, atMs: number): void {
    const { endpoints } = slice as {
      readonly endpoints?:
        | readonly { readonly targetRef?: { readonly kind?: string; readonly name?: string } }[]
        | null;
    };
    for (const { targetRef } of endpoints ?? []) {
      const name = targetRef?.name ?? "";
      if (targetRef?.kind === "Pod" && !this.#sliced.has(name)) this.#sliced.set(name, atMs);
    }
  }
}
