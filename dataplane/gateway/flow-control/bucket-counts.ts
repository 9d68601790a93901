import type { Histogram, LabelValues, Registry } from "prom-client";

/**
 * The counts of one histogram with one set of labels. prom-client's own looks its labels up at each observation, which is dear for
 * something that happens several times in each request; this adds two numbers, and is read at a scrape.
 */
export class BucketCounts {
  readonly bounds: readonly number[];
  /** How many were in each bucket and in no lower one; last, those above all bounds. */
  readonly counts: number[];
  sum = 0;

  /** @param bounds upper ones, ascending */
  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    const { bounds } = this;
    let bucket = 0;
    while (bucket < bounds.length && value > bounds[bucket]!) bucket++;
    this.counts[bucket]!++;
    this.sum += value;
  }

  get total(): number {
    return this.counts.reduce((sum, count) => sum + count, 0);
  }
}

export interface CountedHistogram<L extends string> {
  readonly name: string;
  readonly help: string;
  /** What there is at a scrape; those without an observation are left out. */
  readonly samples: () => Iterable<readonly [LabelValues<L>, BucketCounts]>;
}

/** A histogram in the registry whose numbers are kept elsewhere. */
export function registerHistogram<L extends string>(registry: Registry, histogram: CountedHistogram<L>): void {
  const { name, help, samples } = histogram;
  const get = async (): Promise<unknown> => ({
    name,
    help,
    type: "histogram",
    aggregator: "sum",
    values: [...samples()].flatMap(([labels, counts]) => (counts.total === 0 ? [] : linesOf(name, labels, counts))),
  });
  // The registry asks no more of a metric than this; its type names the classes of prom-client.
  registry.registerMetric({ name, help, type: "histogram", get } as unknown as Histogram<L>);
}

function linesOf<L extends string>(name: string, labels: LabelValues<L>, counts: BucketCounts): object[] {
  let cumulative = 0;
  const buckets = counts.counts.map((count, i) => {
    cumulative += count;
    return { metricName: `${name}_bucket`, labels: { le: counts.bounds[i] ?? "+Inf", ...labels }, value: cumulative };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: counts.sum },
    { metricName: `${name}_count`, labels, value: cumulative },
  ];
}
