import { clearScreenDown, moveCursor } from "node:readline";
import type { WriteStream } from "node:tty";
import Table from "cli-table3";

/** One look at the demo's service. */
export interface Frame {
  readonly stage: string;
  readonly podsReady: number;
  readonly podsWanted: number;
  /** Requests under way or waiting, over the panic window; undefined before the first decision. */
  readonly concurrency: number | undefined;
  readonly desired: number | undefined;
  readonly panic: boolean;
  /** Requests that wait for a place, at all gateways. */
  readonly waiting: number;
}

export interface View {
  show(frame: Frame): void;
  /** Ends the live part; what was shown last stays. */
  end(): void;
}

/** For pipes and logs: one line whenever something changed. */
export class LineView implements View {
  readonly #say: (line: string) => void;
  #last = "";

  constructor(say: (line: string) => void) {
    this.#say = say;
  }

  show(frame: Frame): void {
    const line =
      `${frame.stage.padEnd(16)} pods ${frame.podsReady}/${frame.podsWanted}  desired ${frame.desired ?? "-"}  ` +
      `concurrency ${frame.concurrency?.toFixed(1) ?? "-"}  waiting ${frame.waiting}${frame.panic ? "  PANIC" : ""}`;
    if (line === this.#last) return;
    this.#last = line;
    this.#say(line);
  }

  end(): void {
    this.#last = "";
  }
}

/** How many looks the picture keeps. */
const HISTORY = 60;
const BARS = " ▁▂▃▄▅▆▇█";

/** For a terminal: one table that is drawn anew, with a picture of the last minute. */
export class TableView implements View {
  readonly #out: WriteStream;
  readonly #pods: number[] = [];
  readonly #load: number[] = [];
  #height = 0;

  constructor(out: WriteStream) {
    this.#out = out;
  }

  show(frame: Frame): void {
    remember(this.#pods, frame.podsReady);
    remember(this.#load, frame.concurrency ?? 0);
    const table = new Table({ head: ["stage", "pods", "desired", "concurrency", "waiting", "panic"] });
    table.push([
      frame.stage,
      `${frame.podsReady}/${frame.podsWanted}`,
      String(frame.desired ?? "-"),
      frame.concurrency?.toFixed(1) ?? "-",
      String(frame.waiting),
      frame.panic ? "yes" : "no",
    ]);
    const text = `${table.toString()}\npods        ${bars(this.#pods)}\nconcurrency ${bars(this.#load)}\n`;
    if (this.#height > 0) {
      moveCursor(this.#out, 0, -this.#height);
      clearScreenDown(this.#out);
    }
    this.#out.write(text);
    this.#height = text.split("\n").length - 1;
  }

  end(): void {
    this.#height = 0;
  }
}

function remember(history: number[], value: number): void {
  history.push(value);
  if (history.length > HISTORY) history.shift();
}

function bars(values: readonly number[]): string {
  const highest = Math.max(1, ...values);
  return values.map(value => BARS[Math.ceil((value / highest) * (BARS.length - 1))]).join("");
}
