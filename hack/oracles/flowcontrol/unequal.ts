import { isDeepStrictEqual } from "node:util";

/** Thrown at the first result that differs from the original's. */
export class Unequal extends Error {
  readonly where: string;
  constructor(where: string, detail: string) {
    super(detail);
    this.where = where;
  }
}

export function mustEqual(where: string, what: string, ours: unknown, original: unknown): void {
  if (isDeepStrictEqual(ours, original)) return;
  throw new Unequal(where, `${what}: ours ${JSON.stringify(ours)}, the original's ${JSON.stringify(original)}`);
}
