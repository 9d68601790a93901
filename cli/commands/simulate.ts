import { Option, type Command } from "commander";
import type { Service } from "../../api/serving/v1/types.ts";
import { SERVING_API_VERSION } from "../../api/serving/v1/types.ts";
import type { Spacing } from "../../core/simulation/arrivals.ts";
import type { Distribution } from "../../core/simulation/distribution.ts";
import { simulate } from "../../core/simulation/simulate.ts";
import { CliError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import {
  collect,
  durationMs,
  expecting,
  integerIn,
  numberIn,
  outputOption,
  withDefault,
  type OutputFormat,
} from "../option-parsers.ts";
import { formatMs, plural } from "../render/format.ts";
import { renderPng } from "../render/png.ts";
import { DISTRIBUTION_FORMS, parseDistribution } from "../simulate/distribution-text.ts";
import { renderPicture } from "../simulate/picture.ts";
import { renderReport } from "../simulate/report.ts";
import type { Load, PatternKind, PolicyChoice } from "../simulate/scenario.ts";
import { arrivalsOf, choosePattern, parsePolicy, PATTERN_KINDS, scenariosOf } from "../simulate/scenario.ts";
import { admit, readAutoscalerConfig, readService } from "../simulate/service-file.ts";
import { parseTrace } from "../simulate/trace-file.ts";

interface SimulateOptions {
  readonly file?: string;
  readonly name?: string;
  readonly config?: string;
  readonly annotation?: readonly (readonly [string, string])[];
  readonly containerConcurrency?: number;
  readonly trace?: string;
  readonly pattern: PatternKind;
  readonly rps?: number;
  readonly peakRps?: number;
  readonly at?: number;
  readonly length?: number;
  readonly period?: number;
  readonly burstSize?: number;
  readonly spacing: Spacing;
  readonly duration?: number;
  readonly tail: number;
  readonly serviceTime: Distribution;
  readonly policy?: readonly PolicyChoice[];
  readonly queuePolicy?: readonly ("fair" | "fifo")[];
  readonly podStart: Distribution;
  readonly drain: number;
  readonly gateways: number;
  readonly cpuPerRequest?: number;
  readonly podCpus?: number;
  readonly initialPods?: number;
  readonly created?: true;
  readonly seed: number;
  readonly step?: number;
  readonly svg?: string;
  readonly png?: string;
  readonly plot: boolean;
  readonly output: OutputFormat;
}

const DEFAULT_DURATION_MS = 300_000;
const distribution = expecting(parseDistribution, DISTRIBUTION_FORMS);
const keyAndValue = expecting((text: string): readonly [string, string] | undefined => {
  const equals = text.indexOf("=");
  return equals <= 0 ? undefined : [text.slice(0, equals), text.slice(equals + 1)];
}, "KEY=VALUE");
const queuePolicy = expecting(
  (text: string) => (text === "fair" || text === "fifo" ? text : undefined),
  "fair or fifo",
);

export function addSimulate(program: Command, context: CommandContext): void {
  program
    .command("simulate")
    .argument("[file]", "the same as --file")
    .summary("what would happen to a service under a load")
    .description(
      "Shows what would happen to a service under a load, by scaling policy: pods, waiting requests, latency, cold starts,\n" +
        "refused requests, pod-seconds. It runs the decisions of the operator and the queue of the gateway on a clock of its own;\n" +
        "no cluster is needed, and the same seed gives the same result.",
    )
    .optionsGroup("Service:")
    .option(
      "-f, --file <file>",
      "YAML with the Knative or Cloud Run Service; - is standard input; without: a plain one",
    )
    .option("--name <name>", "which Service, when the file has several")
    .option("-c, --config <file>", "YAML with the ConfigMap config-autoscaler; without: its defaults")
    .option("--annotation <key=value>", "sets an annotation of the template; again for more", collect(keyAndValue))
    .option("--container-concurrency <n>", "instead of the service's", integerIn(0, 1000))
    .optionsGroup("Load:")
    .option("--trace <file>", "CSV or JSON with the time of each request; instead of a pattern")
    .addOption(new Option("--pattern <kind>", "how requests come").choices(PATTERN_KINDS).default("step"))
    .option(
      "--rps <n>",
      "requests per second, before a step or spike, and at night (default: 10; for burst 0)",
      numberIn(0, 1e6),
    )
    .option("--peak-rps <n>", "after a step, in a spike, and at noon (default: 10 times --rps)", numberIn(0, 1e6))
    .option("--at <duration>", "when the step or spike begins (default: a quarter of --duration)", durationMs)
    .option("--length <duration>", "how long a spike lasts (default: a fifth of --duration)", durationMs)
    .option(
      "--period <duration>",
      "of a diurnal wave (default: --duration), or between bursts (default: 1m)",
      durationMs,
    )
    .option("--burst-size <n>", "requests of a burst (default: 50)", integerIn(1, 1e6))
    .addOption(
      new Option("--spacing <kind>", "random arrivals, or as regular as the rate allows")
        .choices(["poisson", "even"])
        .default("poisson"),
    )
    .option("--duration <duration>", "how long requests come (default: 5m, or the whole trace)", durationMs)
    .addOption(withDefault("--tail <duration>", "how long it goes on after that", durationMs, "2m"))
    .addOption(
      withDefault("--service-time <dist>", `of requests that bring none: ${DISTRIBUTION_FORMS}`, distribution, "100ms"),
    )
    .optionsGroup("Scaling:")
    .option(
      "--policy <policy>",
      "kpa, cloudrun, manual or manual:COUNT; again to compare (default: the service's class)",
      collect(expecting(parsePolicy, "kpa, cloudrun, manual or manual:COUNT")),
    )
    .option("--queue-policy <policy>", "fair or fifo; again to compare (default: the service's)", collect(queuePolicy))
    .addOption(
      withDefault(
        "--pod-start <dist>",
        "from the decision to start a pod until it takes requests",
        distribution,
        "lognormal(1.5s,3s)",
      ),
    )
    .addOption(withDefault("--drain <duration>", "how long a stopped pod stays at least", durationMs, "3s"))
    .option("--gateways <n>", "gateways that report", integerIn(1, 100), 2)
    .option(
      "--cpu-per-request <n>",
      "CPUs that a running request keeps busy; without: CPU plays no part",
      numberIn(0, 64),
    )
    .option("--pod-cpus <n>", "CPUs of a pod, instead of the service's limits", numberIn(0.001, 256))
    .option("--initial-pods <n>", "ready pods at the beginning (default: what the policy keeps)", integerIn(0, 10_000))
    .option("--created", "begin with a service that was just created: its initial scale is starting")
    .optionsGroup("Output:")
    .option("--seed <n>", "of everything random", integerIn(0, Number.MAX_SAFE_INTEGER), 1)
    .option("--step <duration>", "distance of the points of the timeline (default: 1s, for hours more)", durationMs)
    .option("--svg <file>", "writes a picture as SVG")
    .option("--png <file>", "writes a picture as PNG")
    .option("--no-plot", "no pictures in the terminal")
    .addOption(outputOption())
    .action((file: string | undefined, options: SimulateOptions) =>
      run(file === undefined ? options : { ...options, file }, context),
    );
}

async function run(options: SimulateOptions, context: CommandContext): Promise<void> {
  const { terminal } = context;
  const configText = options.config === undefined ? undefined : await context.readFile(options.config);
  const { config, warnings } = readAutoscalerConfig(configText, options.config ?? "");
  const read =
    options.file === undefined
      ? admit(changed(PLAIN_SERVICE, options), config, "command line")
      : readService(await context.readFile(options.file), options.file, options.name, config, service =>
          changed(service, options),
        );
  for (const warning of [...warnings, ...read.warnings]) terminal.writeError(`warning: ${warning}\n`);

  const load = await loadOf(options, context);
  const arrivals = arrivalsOf(load, options.serviceTime, options.seed);
  const lastMs = load.kind === "pattern" ? load.durationMs : (options.duration ?? arrivals.at(-1)?.atMs ?? 0);
  const horizonMs = lastMs + options.tail;
  if (horizonMs <= 0) throw new CliError("usage", "--duration and --tail are both 0: there is no time to simulate");
  const specs = scenariosOf({
    service: read.service,
    config,
    policies: options.policy ?? [],
    queuePolicies: options.queuePolicy ?? [],
    arrivals: arrivals.filter(({ atMs }) => atMs <= lastMs),
    horizonMs,
    podStart: options.podStart,
    drainMs: options.drain,
    gateways: options.gateways,
    seed: options.seed,
    cpuPerRequest: options.cpuPerRequest,
    podCpus: options.podCpus,
    beginning: beginningOf(options),
    timelineStepMs: options.step,
  });
  const results = specs.map(spec => {
    context.signal.throwIfAborted();
    return simulate(spec);
  });

  const subtitle = `${read.service.metadata.name ?? "service"}: ${describe(load)}, seed ${options.seed}`;
  if (options.svg !== undefined || options.png !== undefined) {
    const svg = renderPicture(results, subtitle);
    if (options.svg !== undefined) await context.writeFile(options.svg, svg);
    if (options.png !== undefined) await context.writeFile(options.png, await renderPng(svg));
  }
  if (options.output === "json") terminal.write(`${JSON.stringify({ results }, undefined, 2)}\n`);
  else terminal.write(`${subtitle}\n\n${renderReport(results, terminal, options.plot)}`);
}

/** What is simulated when no Service is given: no limits, all defaults. */
const PLAIN_SERVICE: Service = {
  apiVersion: SERVING_API_VERSION,
  kind: "Service",
  metadata: { name: "service" },
  spec: { template: { spec: { containers: [{ image: "fairway.dev/simulated:0" }] } } },
};

/** The service with what the command line changes. */
function changed(service: Service, { annotation = [], containerConcurrency }: SimulateOptions): Service {
  const { template } = service.spec;
  return {
    ...service,
    spec: {
      ...service.spec,
      template: {
        ...template,
        metadata: {
          ...template.metadata,
          annotations: { ...template.metadata?.annotations, ...Object.fromEntries(annotation) },
        },
        spec: { ...template.spec, ...(containerConcurrency === undefined ? {} : { containerConcurrency }) },
      },
    },
  };
}

async function loadOf(options: SimulateOptions, context: CommandContext): Promise<Load> {
  if (options.trace !== undefined) {
    return { kind: "trace", rows: parseTrace(await context.readFile(options.trace), options.trace) };
  }
  const durationMs = options.duration ?? DEFAULT_DURATION_MS;
  const pattern = choosePattern(
    options.pattern,
    {
      rps: options.rps,
      peakRps: options.peakRps,
      atMs: options.at,
      lengthMs: options.length,
      periodMs: options.period,
      burstSize: options.burstSize,
    },
    durationMs,
  );
  return { kind: "pattern", pattern, spacing: options.spacing, durationMs };
}

function beginningOf({ created, initialPods }: SimulateOptions) {
  if (created === true && initialPods !== undefined) {
    throw new CliError("usage", "--created and --initial-pods exclude each other");
  }
  if (created === true) return { kind: "created" } as const;
  return initialPods === undefined ? undefined : ({ kind: "at-rest", pods: initialPods } as const);
}

function describe(load: Load): string {
  if (load.kind === "trace") return `a trace of ${plural(load.rows.length, "request")}`;
  const { pattern, spacing, durationMs } = load;
  const shape = (): string => {
    switch (pattern.kind) {
      case "poisson":
        return `${pattern.rps} requests/s`;
      case "step":
        return `${pattern.fromRps} to ${pattern.toRps} requests/s at ${formatMs(pattern.atMs)}`;
      case "spike":
        return `${pattern.baseRps} requests/s, ${pattern.peakRps} for ${formatMs(pattern.lengthMs)} from ${formatMs(pattern.atMs)} on`;
      case "diurnal":
        return `${pattern.lowRps} to ${pattern.highRps} requests/s, period ${formatMs(pattern.periodMs)}`;
      case "burst":
        return `${plural(pattern.size, "request")} every ${formatMs(pattern.everyMs)} over ${pattern.baseRps} requests/s`;
    }
  };
  return `${shape()} (${spacing === "even" ? "even" : "random"}) for ${formatMs(durationMs)}`;
}
