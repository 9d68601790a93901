/** A binary min-heap whose items know where they stand, so that one can be removed or re-ordered in O(log n). */
export interface HeapItem {
  /** Position in the heap that holds the item; -1 outside. Written by the heap alone. */
  heapIndex: number;
}

export class IndexedHeap<T extends HeapItem> {
  readonly #items: T[] = [];
  readonly #before: (a: T, b: T) => boolean;

  /** `before(a, b)`: a leaves first. A strict order; equal items may leave in any order. */
  constructor(before: (a: T, b: T) => boolean) {
    this.#before = before;
  }

  get size(): number {
    return this.#items.length;
  }

  /** The items in no particular order. */
  get items(): readonly T[] {
    return this.#items;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    this.#items.push(item);
    this.#up(item, this.#items.length - 1);
  }

  pop(): T | undefined {
    const first = this.#items[0];
    if (first !== undefined) this.remove(first);
    return first;
  }

  /** Removes an item of this heap. */
  remove(item: T): void {
    const index = item.heapIndex;
    const last = this.#items.pop()!;
    item.heapIndex = -1;
    if (last === item) return;
    this.#place(last, index);
  }

  /** Restores the order after the key of an item of this heap changed. */
  update(item: T): void {
    this.#place(item, item.heapIndex);
  }

  #place(item: T, index: number): void {
    if (index > 0 && this.#before(item, this.#items[(index - 1) >> 1]!)) this.#up(item, index);
    else this.#down(item, index);
  }

  #up(item: T, index: number): void {
    const items = this.#items;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = items[parentIndex]!;
      if (!this.#before(item, parent)) break;
      items[index] = parent;
      parent.heapIndex = index;
      index = parentIndex;
    }
    items[index] = item;
    item.heapIndex = index;
  }

  #down(item: T, index: number): void {
    const items = this.#items;
    const size = items.length;
    for (;;) {
      let childIndex = 2 * index + 1;
      if (childIndex >= size) break;
      let child = items[childIndex]!;
      const right = items[childIndex + 1];
      if (right !== undefined && this.#before(right, child)) {
        child = right;
        childIndex++;
      }
      if (!this.#before(child, item)) break;
      items[index] = child;
      child.heapIndex = index;
      index = childIndex;
    }
    items[index] = item;
    item.heapIndex = index;
  }
}
