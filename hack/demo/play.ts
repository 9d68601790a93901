import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ROOT, type GatewayAddress } from "../kit/install.ts";
import type { Kube } from "../kit/kube.ts";
import { load, quantile, send } from "../kit/load.ts";
import { waitFor } from "../kit/wait.ts";
import { observe, SERVICE } from "./observe.ts";
import type { Frame, View } from "./view.ts";

const HOST = `${SERVICE.name}.${SERVICE.namespace}.example.com`;
const LOAD_MS = 25_000;
const CLIENTS = 40;
const LOOK_EVERY_MS = 500;

export interface Demo {
  readonly kube: Kube;
  readonly gateway: GatewayAddress;
  readonly say: (line: string) => void;
  readonly view: View;
}

/** The stages, one after the other; throws when one of them was not observed. */
export async function playDemo({ kube, gateway, say, view }: Demo): Promise<void> {
  const target = { ...gateway, host: HOST };
  const service = { apiVersion: "serving.knative.dev/v1", kind: "Service", ...SERVICE };

  say("applying manifests/examples/hello.yaml");
  await kube.applyFile(join(ROOT, "manifests", "examples", "hello.yaml"));
  const ready = await kube.waitForCondition(service, "Ready", "True", 120_000);
  const revision = String(ready.status?.["latestReadyRevisionName"]);
  say(`${SERVICE.name} is Ready at ${String(ready.status?.["url"])}, revision ${revision}`);

  const until = (stage: string, reached: (frame: Frame) => boolean, timeoutMs: number): Promise<Frame> =>
    waitFor(
      stage,
      async () => {
        const frame = await observe(kube, revision, stage);
        view.show(frame);
        if (reached(frame)) return frame;
        throw new Error(JSON.stringify(frame));
      },
      { timeoutMs, everyMs: LOOK_EVERY_MS },
    );
  const atZero = (frame: Frame): boolean => frame.podsWanted === 0 && frame.podsReady === 0;

  say("waiting until nobody uses it and it is at zero");
  await until("to zero", atZero, 180_000);
  view.end();

  say("one request at zero");
  const first = await send(target, { timeoutMs: 60_000 });
  if (first.status !== 200) throw new Error(`the request at zero was answered ${first.status}: ${first.body}`);
  say(`answered ${first.status} after ${first.tookMs.toFixed(0)} ms, the pod's start included: ${first.body.trim()}`);

  say(`${CLIENTS} clients for ${LOAD_MS / 1000} s, each request takes 200 ms`);
  const stop = AbortSignal.timeout(LOAD_MS);
  const sending = load(target, { concurrency: CLIENTS, perClient: 10_000, path: "/?sleep=200", until: stop });
  await until("under load", frame => frame.podsReady >= 3, 60_000);
  let most = 0;
  while (!stop.aborted) {
    const frame = await observe(kube, revision, "under load");
    view.show(frame);
    most = Math.max(most, frame.podsReady);
    await delay(LOOK_EVERY_MS);
  }
  const report = await sending;
  view.end();
  const failed = report.sent - (report.byStatus["200"] ?? 0);
  say(
    `${report.sent} requests, ${failed} failed, p50 ${quantile(report.latenciesMs, 0.5).toFixed(0)} ms, ` +
      `p99 ${quantile(report.latenciesMs, 0.99).toFixed(0)} ms, up to ${most} pods`,
  );
  if (failed > 0) throw new Error(`failed requests: ${JSON.stringify(report.byStatus)} ${report.errors[0] ?? ""}`);

  say("load has ended: back to zero");
  await until("to zero", atZero, 180_000);
  view.end();
  say("back at zero: every stage was observed");
}
