import type { CollectionHandler, KubeObject } from "./reflector.ts";

export interface KeyedObjects<T> {
  upsert(key: string, object: T): void;
  remove(key: string): void;
  /** Keys of all that are there. */
  keys(): Iterable<string>;
}

/** A handler by `namespace/name` (`/name` for what is in no namespace): a list removes what it does not have. */
export function keyedHandler<T>(objects: KeyedObjects<T>): CollectionHandler {
  const keyOf = ({ metadata }: KubeObject): string => `${metadata.namespace}/${metadata.name}`;
  const upsert = (object: KubeObject): void => objects.upsert(keyOf(object), object as unknown as T);
  return {
    replace(listed) {
      const present = new Set(listed.map(keyOf));
      for (const key of [...objects.keys()]) if (!present.has(key)) objects.remove(key);
      for (const object of listed) upsert(object);
    },
    upsert,
    remove: object => objects.remove(keyOf(object)),
  };
}
