import type { Clock, Timer } from "../shared/clock.ts";
import { appCheck, type AppCheck } from "./app-check.ts";
import type { ReadinessProbe } from "./config.ts";

/** Between two looks at an app that is starting. */
const STARTING_INTERVAL_MS = 25;
/** The same where a look is a connection that the app need not even notice, and for an app that starts as quickly as most. */
const QUICK_INTERVAL_MS = 5;
const QUICK_FOR_MS = 2_000;

/** `starting` until the app was ready once; `problem` says what the last look found. */
export type ReadinessState =
  | { readonly phase: "starting"; readonly problem: string }
  | { readonly phase: "started"; readonly problem: string | undefined };

export interface ReadinessOptions {
  readonly probes: readonly ReadinessProbe[];
  /** How long `ask` may take. */
  readonly holdMs: number;
}

/**
 * Knows whether the app is ready. While it starts, it is looked at every 25 ms (at first every 5 ms where only its port is looked
 * at), whoever asks or not, so that its readiness is known at once; after that it is looked at when somebody asks, once for all
 * who ask meanwhile, and no more often than its probe says.
 */
export class Readiness {
  readonly #clock: Clock;
  readonly #options: ReadinessOptions;
  readonly #checks: readonly { readonly probe: ReadinessProbe; readonly check: AppCheck }[];
  readonly #startedMs: number;
  /** Between two looks at an app that has started: the shortest that a probe says. */
  readonly #periodMs: number;
  #lookedMs = -Infinity;
  readonly #waiting = new Set<() => void>();
  #state: ReadinessState = { phase: "starting", problem: "the app was not looked at yet" };
  #timer: Timer | undefined;
  #stopped = false;
  #successes = 0;
  #look: Promise<string | undefined> | undefined;

  constructor(options: ReadinessOptions, clock: Clock, makeCheck: (probe: ReadinessProbe) => AppCheck = checkOf) {
    this.#clock = clock;
    this.#options = options;
    this.#startedMs = clock.nowMs();
    this.#periodMs = Math.min(...options.probes.map(probe => probe.periodMs));
    this.#checks = options.probes.map(probe => ({ probe, check: makeCheck(probe) }));
  }

  get state(): ReadinessState {
    return this.#state;
  }

  /** Calls once, when the app is ready for the first time. */
  onStarted: ((afterMs: number) => void) | undefined;

  /** Begins to look at the starting app. */
  start(): void {
    const delayMs = Math.max(0, ...this.#options.probes.map(probe => probe.initialDelayMs));
    if (delayMs === 0) void this.#lookWhileStarting();
    else this.#timer = this.#clock.after(delayMs, () => void this.#lookWhileStarting());
  }

  stop(): void {
    this.#stopped = true;
    if (this.#timer !== undefined) this.#clock.cancel(this.#timer);
    for (const wake of this.#waiting) wake();
  }

  /**
   * Resolves with why the app is not ready, or undefined when it is, within `holdMs`. A starting app is waited for that
   * long, so that who asks learns of its readiness at once and not at the next time of asking.
   */
  async ask(): Promise<string | undefined> {
    if (this.#state.phase === "starting" && !this.#stopped) await this.#untilStarted();
    else if (this.#clock.nowMs() - this.#lookedMs >= this.#periodMs)
      this.#state = { phase: "started", problem: await this.#lookOnce(this.#options.holdMs) };
    return this.#state.problem;
  }

  #untilStarted(): Promise<void> {
    return new Promise(resolve => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        this.#clock.cancel(timer);
        resolve();
      };
      const timer = this.#clock.after(this.#options.holdMs, wake);
      this.#waiting.add(wake);
    });
  }

  async #lookWhileStarting(): Promise<void> {
    const problem = await this.#lookOnce(0);
    if (this.#stopped) return;
    this.#successes = problem === undefined ? this.#successes + 1 : 0;
    // Looked at as often as that, an app that opens its port and ends at once could be met.
    const least = this.#startingIntervalMs() === QUICK_INTERVAL_MS ? 2 : 1;
    const needed = Math.max(least, ...this.#options.probes.map(probe => probe.successThreshold));
    if (problem === undefined && this.#successes >= needed) {
      this.#state = { phase: "started", problem: undefined };
      this.onStarted?.(this.#clock.nowMs() - this.#startedMs);
      for (const wake of this.#waiting) wake();
      return;
    }
    this.#state = { phase: "starting", problem: problem ?? `ready ${this.#successes} times in a row of ${needed}` };
    this.#timer = this.#clock.after(this.#startingIntervalMs(), () => void this.#lookWhileStarting());
  }

  #startingIntervalMs(): number {
    const isQuick = this.#clock.nowMs() - this.#startedMs < QUICK_FOR_MS;
    return isQuick && this.#checks.every(({ probe }) => probe.check.kind === "tcp")
      ? QUICK_INTERVAL_MS
      : STARTING_INTERVAL_MS;
  }

  /** One look at every container, each for as long as its probe says, or `atLeastMs`. */
  #lookOnce(atLeastMs: number): Promise<string | undefined> {
    this.#lookedMs = this.#clock.nowMs();
    this.#look ??= Promise.all(this.#checks.map(({ probe, check }) => check(Math.max(probe.timeoutMs, atLeastMs))))
      .then(problems => problems.find(problem => problem !== undefined))
      .finally(() => (this.#look = undefined));
    return this.#look;
  }
}

const checkOf = (probe: ReadinessProbe): AppCheck => appCheck(probe.check);
