import { ApiException, KubeConfig, KubernetesObjectApi, type KubernetesObject } from "@kubernetes/client-node";
import type { FlowControlCase } from "./flow-control-specs.ts";
import type { Verdict } from "./flow-control-verdict.ts";

export const KUBERNETES_GROUP = "flowcontrol.apiserver.k8s.io/v1";

/** Asks an API server what it thinks of flow-control objects, by dry runs: nothing is ever stored. */
export class KubeVerdicts {
  readonly #objects: KubernetesObjectApi;
  readonly #apiVersion: string;

  constructor(config: KubeConfig, apiVersion: string) {
    this.#objects = KubernetesObjectApi.makeApiClient(config);
    this.#apiVersion = apiVersion;
  }

  static fromFile(kubeconfigPath: string, apiVersion: string): KubeVerdicts {
    const config = new KubeConfig();
    config.loadFromFile(kubeconfigPath);
    return new KubeVerdicts(config, apiVersion);
  }

  /** A create, or an update where an object of the name exists. */
  async verdict({ kind, name, spec }: FlowControlCase): Promise<Verdict> {
    const object = { apiVersion: this.#apiVersion, kind, metadata: { name }, spec } as KubernetesObject;
    try {
      return await this.#judge(() => this.#objects.create(object, undefined, "All"));
    } catch (error) {
      if (!(error instanceof ApiException) || error.code !== 409) throw error;
    }
    const ref = { apiVersion: this.#apiVersion, kind, metadata: { name } } as Required<
      Pick<KubernetesObject, "metadata">
    >;
    const existing = await this.#objects.read(ref as Parameters<KubernetesObjectApi["read"]>[0]);
    const resourceVersion = existing.metadata?.resourceVersion;
    const update = { ...object, metadata: { name, ...(resourceVersion === undefined ? {} : { resourceVersion }) } };
    return this.#judge(() => this.#objects.replace(update, undefined, "All"));
  }

  async #judge(write: () => Promise<KubernetesObject>): Promise<Verdict> {
    try {
      const stored = (await write()) as KubernetesObject & { spec?: unknown };
      return { accepted: true, spec: stored.spec };
    } catch (error) {
      if (!(error instanceof ApiException)) throw error;
      // 422: not valid; 400: not even of the right types, or refused by a webhook.
      if (error.code !== 422 && error.code !== 400) throw error;
      const body = JSON.parse(String(error.body)) as { details?: { causes?: { field?: string }[] } };
      return { accepted: false, fields: (body.details?.causes ?? []).flatMap(cause => cause.field ?? []) };
    }
  }
}
