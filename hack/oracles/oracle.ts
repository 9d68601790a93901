/** What an oracle is: a Go program that runs the original, and a replay of its traces through our code. */
export interface Oracle {
  readonly name: string;
  /** Directory of the Go module, relative to hack/oracles. Its program takes -seed, -from, -count and writes JSON lines. */
  readonly module: string;
  /** Scenarios of a full run. */
  readonly scenarios: number;
  /** Committed part: path relative to the project root (JSON lines, Brotli), and how many scenarios it holds. */
  readonly vectors: { readonly file: string; readonly scenarios: number };
  /** Plays one line; undefined when every result is equal, else the first difference. */
  replay(line: string): Difference | undefined;
}

export interface Difference {
  readonly scenario: number;
  readonly label: string;
  readonly where: string;
  readonly detail: string;
}
