/** Reading of Prometheus' text format, as far as the project's own processes write it. */

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

function* samples(text: string): Generator<Sample> {
  for (const line of text.split("\n")) {
    const match = LINE.exec(line);
    if (match === null) continue;
    const [, name = "", labels = "", value = ""] = match;
    yield {
      name,
      labels: Object.fromEntries([...labels.matchAll(LABEL)].map(([, key = "", text = ""]) => [key, text])),
      value: Number(value),
    };
  }
}

type Labels = Readonly<Record<string, string>>;

function matching(text: string, name: string, labels: Labels): Sample[] {
  return [...samples(text)].filter(
    sample => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  );
}

/** The first sample of that name that has all the labels. */
export function metricValue(text: string, name: string, labels: Labels = {}): number | undefined {
  return matching(text, name, labels)[0]?.value;
}

/** The sum over all samples of that name that have the labels; 0 when there is none. */
export function sumOfMetric(text: string, name: string, labels: Labels = {}): number {
  return matching(text, name, labels).reduce((sum, sample) => sum + sample.value, 0);
}
