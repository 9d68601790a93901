/**
 * Numbers at positions 0..size-1 with the smallest known: a tournament tree. Setting one costs O(log size), and so does
 * finding the first position, counted round from a given one, that holds the smallest.
 */
export class MinTree {
  readonly size: number;
  /** First leaf: the smallest power of two that is not below `size`. */
  readonly #leaves: number;
  /** Node n has the children 2n and 2n+1 and holds the smaller; absent positions hold Infinity. */
  readonly #nodes: Float64Array;

  constructor(size: number) {
    this.size = size;
    this.#leaves = 2 ** Math.ceil(Math.log2(Math.max(1, size)));
    this.#nodes = new Float64Array(2 * this.#leaves).fill(Infinity);
  }

  /** The smallest number; Infinity if all positions are absent. */
  get min(): number {
    return this.#nodes[1]!;
  }

  /** Puts a number at a position; Infinity makes it absent. */
  set(position: number, value: number): void {
    const nodes = this.#nodes;
    let node = this.#leaves + position;
    nodes[node] = value;
    while (node > 1) {
      node >>= 1;
      const left = nodes[2 * node]!;
      const right = nodes[2 * node + 1]!;
      const smaller = right < left ? right : left;
      if (nodes[node] === smaller) return;
      nodes[node] = smaller;
    }
  }

  /** The first position at or after `start`, going round, that holds `min`; -1 if all are absent. */
  firstMinFrom(start: number): number {
    const { min } = this;
    if (min === Infinity) return -1;
    const after = start < this.size ? this.#firstFrom(start, min) : -1;
    return after >= 0 ? after : this.#firstFrom(0, min);
  }

  /** The first position at or after `start`, not going round, that holds `min`; -1 if there is none. */
  #firstFrom(start: number, min: number): number {
    const nodes = this.#nodes;
    let node = this.#leaves + start;
    // Up while neither this subtree nor, from a left child, the sibling to the right holds it.
    while (nodes[node] !== min) {
      while ((node & 1) === 1) {
        if (node === 1) return -1;
        node >>= 1;
      }
      if (node === 0) return -1;
      node++;
    }
    while (node < this.#leaves) {
      node *= 2;
      if (nodes[node] !== min) node++;
    }
    return node - this.#leaves;
  }
}
