import { z } from "zod";

/**
 * Building blocks that carry what a structural schema needs. `hack/generate` turns the zod schemas into CRDs:
 * `z.object` prunes unknown fields, `z.looseObject` keeps them (`x-kubernetes-preserve-unknown-fields`), and keys that
 * begin with `x-kubernetes-`, `format` and `default` in `.meta()` are taken over as they are.
 */

export const int32 = () => z.int().meta({ format: "int32" });
export const int64 = () => z.int().meta({ format: "int64" });

/** A port number or the name of a port. */
export const intOrString = () => z.union([z.int(), z.string()]).meta({ "x-kubernetes-int-or-string": true });

/** The Kubernetes quantity grammar, as the API server's own schemas spell it. */
export const QUANTITY_PATTERN =
  "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$";

/** A resource quantity: `500m`, `1`, `128Mi`. YAML may carry it as a number. */
export const quantity = () =>
  z.union([z.int(), z.string()]).meta({ "x-kubernetes-int-or-string": true, pattern: QUANTITY_PATTERN });

/** A Kubernetes object of the core API that is passed through to the pod as it is. */
export const opaque = () => z.looseObject({});

export const stringMap = () => z.record(z.string(), z.string());

/** Server-side apply replaces the whole list. */
export const ATOMIC_LIST = { "x-kubernetes-list-type": "atomic" } as const;

/** Server-side apply merges the list by these keys, and the API server refuses duplicates. */
export const mapList = (...keys: string[]) => ({
  "x-kubernetes-list-type": "map",
  "x-kubernetes-list-map-keys": keys,
});

export const ATOMIC_MAP = { "x-kubernetes-map-type": "atomic" } as const;
