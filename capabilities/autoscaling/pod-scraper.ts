import { request } from "undici";
import { PodStatSchema, type PodStat } from "../../api/wire/stats.ts";
import { podUrl } from "../runtime/pod-url.ts";

/** Where queue-proxies answer `GET /stats`. */
const STATS_PORT = 9091;
/** A report is under 1 KiB. */
const MAX_STAT_BYTES = 16 * 1024;

export interface PodTarget {
  readonly name: string;
  readonly ip: string;
}

/**
 * Reads one pod's last second. Throws when there is no answer in `timeoutMs`, the answer is no PodStat, or it is another
 * pod's (the address was given to another pod meanwhile).
 */
export type ScrapePod = (pod: PodTarget, signal: AbortSignal) => Promise<PodStat>;

export function podScraper(timeoutMs: number, port = STATS_PORT): ScrapePod {
  return async (pod, signal) => {
    const { statusCode, body } = await request(podUrl(pod.ip, port, "/stats"), {
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
    if (statusCode !== 200) {
      await body.dump();
      throw new ScrapeError(`pod ${pod.name}: GET /stats answered ${statusCode}`);
    }
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of body as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > MAX_STAT_BYTES) throw new ScrapeError(`pod ${pod.name}: report over ${MAX_STAT_BYTES} bytes`);
      chunks.push(chunk);
    }
    const stat = PodStatSchema.safeParse(JSON.parse(Buffer.concat(chunks).toString("utf8")));
    if (!stat.success) throw new ScrapeError(`pod ${pod.name}: ${stat.error.issues[0]?.path.join(".")} is invalid`);
    if (stat.data.podName !== pod.name) {
      throw new ScrapeError(`${pod.ip} answered for pod ${stat.data.podName}, not ${pod.name}`);
    }
    return stat.data;
  };
}

/** A queue-proxy did not tell its numbers. */
export class ScrapeError extends Error {
  readonly code = "SCRAPE_FAILED";
}
