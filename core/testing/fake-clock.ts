/** A clock that only moves when told to; timers fire in order of their time, then of their creation. Never shipped. */
export class FakeClock {
  #nowMs: number;
  #order = 0;
  readonly #timers = new Set<{ readonly atMs: number; readonly order: number; readonly run: () => void }>();

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#nowMs = startMs;
  }

  readonly nowMs = (): number => this.#nowMs;
  readonly elapsedMs = (): number => this.#nowMs;

  readonly after = (delayMs: number, run: () => void): (() => void) => {
    const timer = { atMs: this.#nowMs + Math.max(0, delayMs), order: this.#order++, run };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  };

  /** How many timers wait. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Moves time on by `ms`, firing what comes due, and lets promises settle before, between and after. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await settle();
    for (;;) {
      const due = [...this.#timers]
        .filter(timer => timer.atMs <= untilMs)
        .sort((a, b) => a.atMs - b.atMs || a.order - b.order)[0];
      if (due === undefined) break;
      this.#timers.delete(due);
      this.#nowMs = Math.max(this.#nowMs, due.atMs);
      due.run();
      await settle();
    }
    this.#nowMs = untilMs;
    await settle();
  }
}

/** Lets every promise that is ready run its continuations, several deep. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise(resolve => setImmediate(resolve));
}
