import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import Table from "cli-table3";
import { Command } from "commander";
import { clusterName, ensureCluster } from "../../hack/cluster/cluster.ts";
import { gatewayAddress, installFairway, loadImages, SYSTEM_NAMESPACE } from "../../hack/kit/install.ts";
import { Kube } from "../../hack/kit/kube.ts";
import { quantile, send, type Target } from "../../hack/kit/load.ts";
import { waitFor } from "../../hack/kit/wait.ts";
import { coldService, barePod, SAMPLE_PORT } from "./coldstart/objects.ts";
import { Sightings } from "./coldstart/sightings.ts";

/**
 * What a request at zero waits for: `npm run bench:coldstart`. In each round a service of the sample server is asked at zero,
 * and the same server is started as a bare pod by the API; what the first takes longer than the second is Fairway's part. Both
 * stand on the same node, one right after the other and in changing order, so that a busy machine slows both.
 *
 * Two bare pods stand beside it: one as Kubernetes makes it, and one without the ServiceAccount token that Fairway leaves out
 * as installed (config-defaults): a kubelet looks for a pod's volumes every 300 ms, so a pod without any is that much sooner.
 *
 * A pod can be reached once the API tells its address, which the kubelet reports up to a second after the pod runs: the same
 * for both, but the noise of a single round. So the medians of all rounds are compared.
 */

const TARGET_MS = 150;
const LIMIT_MS = 120_000;
/** Where the way to zero is short, rounds are. */
const WINDOW = "6s";
const GRACE = "6s";

interface Round {
  readonly totalMs: number;
  readonly bareMs: number;
  /** Without a token, and so without a volume. */
  readonly leanMs: number;
  /** The further requests right after the first, each over a new connection. */
  readonly nextMs: readonly number[];
  readonly stages: ReadonlyMap<string, number>;
}

const options = new Command("npm run bench:coldstart --")
  .option("--rounds <number>", "how many cold starts", Number, 30)
  .option("--services <number>", "services that take turns", Number, 4)
  .option("--name <name>", "the local cluster (default: FAIRWAY_CLUSTER, else fairway)")
  .option("--check", `exit 1 unless the median of Fairway's part is under ${TARGET_MS} ms`)
  .parse()
  .opts<{ rounds: number; services: number; name?: string; check?: true }>();

const say = (line: string): void => console.error(`coldstart: ${line}`);
const cluster = await ensureCluster({ name: clusterName(options.name, process.env), progress: say });
const images = await loadImages(cluster.name, say);
const kube = new Kube(cluster.kubeconfigPath);
await installFairway(kube, say, images);

const namespace = `coldstart-${Date.now().toString(36)}`;
const settings = { apiVersion: "v1", kind: "ConfigMap", namespace: SYSTEM_NAMESPACE, name: "config-autoscaler" };
const graceBefore = (await kube.get(settings))?.data?.["scale-to-zero-grace-period"] ?? null;
await kube.mergePatch(settings, { data: { "scale-to-zero-grace-period": GRACE } });
await kube.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
const over = new AbortController();
try {
  const sightings = await Sightings.of(kube, namespace, over.signal);
  const rounds = await measure(sightings);
  report(rounds);
} finally {
  over.abort();
  await kube.delete({ apiVersion: "v1", kind: "Namespace", name: namespace });
  await kube.mergePatch(settings, { data: { "scale-to-zero-grace-period": graceBefore } });
}

async function measure(sightings: Sightings): Promise<Round[]> {
  const gateway = await gatewayAddress(kube);
  const names = Array.from({ length: options.services }, (_, i) => `cold-${i}`);
  say(`${names.length} services to zero`);
  await kube.apply(names.map(name => coldService(namespace, name, WINDOW)));
  const rounds: Round[] = [];
  for (let i = 0; i < options.rounds; i++) {
    const name = names[i % names.length] ?? "";
    await atRest(name);
    const target: Target = { ...gateway, host: `${name}.${namespace}.example.com` };
    const bareFirst = i % 2 === 0;
    const startBoth = async () => ({
      bare: await startBare(sightings, `bare-${i}`, true),
      lean: await startBare(sightings, `lean-${i}`, false),
    });
    const before = bareFirst ? await startBoth() : undefined;
    const asked = await ask(sightings, name, target);
    const { bare, lean } = before ?? (await startBoth());
    const stages = new Map([...asked.stages, ...bare.stages]);
    rounds.push({ ...asked, bareMs: bare.totalMs, leanMs: lean.totalMs, stages });
    say(
      `round ${i + 1}/${options.rounds}: ${asked.totalMs.toFixed(0)} ms, bare ${bare.totalMs.toFixed(0)} ms, ` +
        `without token ${lean.totalMs.toFixed(0)} ms, ` +
        `then ${asked.nextMs.map(ms => ms.toFixed(0)).join(", ")} ms`,
    );
  }
  return rounds;
}

/** Waits until the service has no pod at all and nothing else starts or ends. */
async function atRest(name: string): Promise<void> {
  const service = { apiVersion: "serving.knative.dev/v1", kind: "Service", namespace, name };
  await kube.waitForCondition(service, "Ready", "True", LIMIT_MS);
  await waitFor(
    `${name} at zero`,
    async () => (await kube.list("v1", "Pod", namespace, `serving.knative.dev/service=${name}`)).length === 0,
    { timeoutMs: LIMIT_MS, everyMs: 500 },
  );
  await waitFor("bare pods to go", async () => (await kube.list("v1", "Pod", namespace, "bench=bare")).length === 0, {
    timeoutMs: LIMIT_MS,
    everyMs: 200,
  });
}

/** A pod by itself: from the call that makes it until its port answers. */
async function startBare(
  sightings: Sightings,
  name: string,
  token: boolean,
): Promise<{ readonly totalMs: number; readonly stages: ReadonlyMap<string, number> }> {
  const pod = barePod(namespace, name, token);
  const begun = performance.now();
  const address = sightings.address(name, LIMIT_MS);
  await kube.create(pod);
  const target: Target = { address: await address, port: SAMPLE_PORT, host: "bare" };
  for (;;) {
    const answer = await send(target, { timeoutMs: 1_000 }).catch(() => undefined);
    if (answer?.status === 200) break;
    if (performance.now() - begun > LIMIT_MS) throw new Error(`${name}: no answer in ${LIMIT_MS} ms`);
    await delay(2);
  }
  const answered = performance.now();
  const { created, addressed } = sightings.of(name);
  await kube.delete({ apiVersion: "v1", kind: "Pod", namespace, name }, 0);
  return {
    totalMs: answered - begun,
    stages: new Map([
      ["bare: call -> pod", created - begun],
      ["bare: pod -> address told", addressed - created],
      ["bare: address told -> answer", answered - addressed],
    ]),
  };
}

async function ask(sightings: Sightings, name: string, target: Target): Promise<Omit<Round, "bareMs" | "leanMs">> {
  const begun = performance.now();
  const answer = await send(target, { timeoutMs: LIMIT_MS });
  const answered = performance.now();
  if (answer.status !== 200) throw new Error(`${name}: answered ${answer.status}: ${answer.body}`);
  const nextMs: number[] = [];
  for (let i = 0; i < 4; i++) {
    const next = await send(target, { timeoutMs: LIMIT_MS });
    if (next.status !== 200) throw new Error(`${name}: answered ${next.status}: ${next.body}`);
    nextMs.push(next.tookMs);
  }
  const pod = String(answer.headers["x-pod"]);
  const decided = sightings.scaledUp(`${name}-00001-deployment`, begun);
  const { created, addressed, sliced } = sightings.of(pod);
  const log = await kube.logs(namespace, pod, "queue-proxy");
  const listening = logged(log, "listening");
  const appReady = logged(log, "the app is ready");
  return {
    totalMs: answered - begun,
    nextMs,
    stages: new Map([
      ["request -> pods decided", decided - begun],
      ["pods decided -> pod", created - decided],
      ["pod -> queue-proxy listens", listening - created],
      ["pod -> app found ready", appReady - created],
      ["pod -> address told", addressed - created],
      ["address told -> in endpoints", sliced - addressed],
      ["address told and app ready -> answer", answered - Math.max(addressed, appReady)],
    ]),
  };
}

/** When a line was logged, on the clock of `performance.now()`. */
function logged(log: string, message: string): number {
  for (const line of log.split("\n")) {
    if (!line.includes(`"${message}"`)) continue;
    const { time } = JSON.parse(line) as { readonly time: string };
    return Date.parse(time) - performance.timeOrigin;
  }
  return Number.NaN;
}

function report(rounds: readonly Round[]): void {
  const median = (values: readonly number[]): number => quantile(sorted(values), 0.5);
  const table = new Table({ head: ["ms", "p50", "p90"], colAligns: ["left", "right", "right"] });
  const row = (what: string, values: readonly number[]): void => {
    const of = sorted(values.filter(value => !Number.isNaN(value)));
    table.push([what, quantile(of, 0.5).toFixed(0), quantile(of, 0.9).toFixed(0)]);
  };
  const totals = rounds.map(round => round.totalMs);
  const bares = rounds.map(round => round.bareMs);
  const leans = rounds.map(round => round.leanMs);
  row("request at zero -> answer", totals);
  row("bare pod -> answer", bares);
  row("bare pod without token -> answer", leans);
  row(
    "per round: request - bare pod",
    rounds.map(round => round.totalMs - round.bareMs),
  );
  for (const stage of rounds[0]?.stages.keys() ?? [])
    row(
      `  ${stage}`,
      rounds.map(round => round.stages.get(stage) ?? Number.NaN),
    );
  row(
    "the next requests",
    rounds.flatMap(round => round.nextMs),
  );
  console.log(table.toString());
  const part = median(totals) - median(bares);
  const verdict = part < TARGET_MS ? "met" : "missed";
  console.log(
    `Fairway's part: ${part.toFixed(0)} ms (p50 of ${rounds.length} requests at zero minus p50 of as many bare pods; ` +
      `goal: under ${TARGET_MS} ms, ${verdict})`,
  );
  console.log(
    `Over a bare pod that has no ServiceAccount token either: ${(median(totals) - median(leans)).toFixed(0)} ms`,
  );
  if (options.check === true && verdict === "missed") process.exitCode = 1;
}

function sorted(values: readonly number[]): number[] {
  return [...values].sort((a, b) => a - b);
}
