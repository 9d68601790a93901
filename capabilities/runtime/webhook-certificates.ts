import { X509Certificate } from "node:crypto";
import { Gauge, type Registry } from "prom-client";
import { z } from "zod";
import { isAlreadyExists, isConflict, isNotFound } from "./api-error.ts";
import { BACKDATE_MS, createAuthority, issueServerCertificate, type KeyPair } from "./certificate-authority.ts";
import { planCertificates, ROTATION, type CertificateFacts, type CertificateFactsInUse } from "./certificate-plan.ts";
import { backoffMs, pause, type Clock } from "./clock.ts";
import type { KubeApi } from "./kube-api.ts";
import type { ComponentLogger } from "./logging.ts";
import { defineResource } from "./resource.ts";
import type { KubeObject } from "./types.ts";

/** What replicas serve with, and callers trust. */
export interface WebhookCertificates {
  readonly serving: KeyPair;
  /** PEM of every authority that a served certificate may come from. */
  readonly caBundle: string;
}

export const WEBHOOK_SECRET = "fairway-webhook-certs";

type Secret = KubeObject & { readonly data?: Readonly<Record<string, string>> | undefined };

/** The Secret alone is watched, and alone is allowed to this ServiceAccount. */
export const webhookSecrets = defineResource<Secret>("v1", "Secret", "secrets", {
  scope: { namespace: "system", fieldSelector: `metadata.name=${WEBHOOK_SECRET}` },
});

export interface CertificateKeeperOptions {
  readonly api: KubeApi;
  readonly namespace: string;
  /** The names that the serving certificate is for. */
  readonly hosts: readonly string[];
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: ComponentLogger;
  readonly metrics: Registry;
}

const secretSchema = z.looseObject({
  metadata: z.looseObject({ resourceVersion: z.string() }),
  data: z.record(z.string(), z.string()).optional(),
});

/** The Secret's keys. `ca.crt` is the bundle, current authority first. */
const KEYS = {
  bundle: "ca.crt",
  authorityKey: "ca.key",
  servingCertificate: "tls.crt",
  servingKey: "tls.key",
  nextCertificate: "next-ca.crt",
  nextKey: "next-ca.key",
} as const;

/** What the Secret holds. */
interface CertificateSet {
  readonly authority: KeyPair;
  readonly serving: KeyPair;
  readonly next: KeyPair | undefined;
  /** The authority before this one; what it signed may still be served somewhere. */
  readonly previous: string | undefined;
}

const RETRY = { baseMs: 500, maxMs: 60_000 } as const;

/**
 * Keeps the certificates in a Secret that all replicas share: makes it when it is missing (any replica, the first wins) and
 * renews it before it expires (the leader). Replicas learn of a new one by their watch and need no restart.
 */
export class CertificateKeeper {
  readonly #options: CertificateKeeperOptions;
  readonly #expiry: Gauge<"certificate">;

  constructor(options: CertificateKeeperOptions) {
    this.#options = options;
    this.#expiry = new Gauge({
      name: "fairway_webhook_certificate_expiry_timestamp_seconds",
      help: "When a certificate of the webhooks expires",
      labelNames: ["certificate"],
      registers: [options.metrics],
    });
  }

  /** What a replica uses of a Secret; `undefined` when it is incomplete or damaged. */
  read(secret: Secret | undefined): WebhookCertificates | undefined {
    const set = parseSet(secret?.data);
    if (set === undefined) return undefined;
    this.#expiry.set({ certificate: "serving" }, factsOf(set.serving.certificate).notAfterMs / 1000);
    this.#expiry.set({ certificate: "authority" }, factsOf(set.authority.certificate).notAfterMs / 1000);
    return { serving: set.serving, caBundle: bundleOf(set) };
  }

  /** Makes sure that there is a usable Secret; keeps trying until the signal aborts. For every replica, at its start. */
  async ensure(signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#options;
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        const { set } = await this.#load(signal);
        if (set !== undefined) return;
        await this.step(signal);
      } catch (error) {
        if (signal.aborted) return;
        log.warn({ error, failures }, "no webhook certificates yet: trying again");
        await pause(clock, backoffMs(failures, RETRY, random), signal);
      }
    }
  }

  /** Takes the next step of rotation, if one is due, and returns how long to wait for the one after it. For the leader. */
  async step(signal: AbortSignal): Promise<number> {
    const { clock, hosts, log } = this.#options;
    const nowMs = clock.nowMs();
    const { set, resourceVersion } = await this.#load(signal);
    const step = planCertificates(set && factsInUse(set), hosts, nowMs);
    if (step.do === "wait") return Math.max(1, step.atMs - nowMs);
    const next = await this.#make(step.do, set, nowMs);
    if (await this.#save(next, resourceVersion, signal))
      log.info({ step: step.do, hosts }, "webhook certificates changed");
    return 0;
  }

  async #make(
    what: "create" | "renew-serving" | "announce-authority" | "promote-authority",
    set: CertificateSet | undefined,
    nowMs: number,
  ): Promise<CertificateSet> {
    const issue = (authority: KeyPair) =>
      issueServerCertificate(authority, this.#options.hosts, nowMs, ROTATION.servingDays);
    if (set === undefined || what === "create") {
      const authority = await createAuthority(nowMs, ROTATION.authorityDays);
      return { authority, serving: await issue(authority), next: undefined, previous: undefined };
    }
    switch (what) {
      case "renew-serving":
        return { ...set, serving: await issue(set.authority) };
      case "announce-authority":
        return { ...set, next: await createAuthority(nowMs, ROTATION.authorityDays) };
      case "promote-authority": {
        const authority = set.next ?? (await createAuthority(nowMs, ROTATION.authorityDays));
        return { authority, serving: await issue(authority), next: undefined, previous: set.authority.certificate };
      }
    }
  }

  async #load(signal: AbortSignal): Promise<{ set: CertificateSet | undefined; resourceVersion: string | undefined }> {
    try {
      const path = `/api/v1/namespaces/${this.#options.namespace}/secrets/${WEBHOOK_SECRET}`;
      const secret = secretSchema.parse(await this.#options.api.call("GET", path, { signal }));
      return { set: parseSet(secret.data), resourceVersion: secret.metadata.resourceVersion };
    } catch (error) {
      if (isNotFound(error)) return { set: undefined, resourceVersion: undefined };
      throw error;
    }
  }

  /** False when another replica was faster. */
  async #save(set: CertificateSet, resourceVersion: string | undefined, signal: AbortSignal): Promise<boolean> {
    const { api, namespace } = this.#options;
    const collection = `/api/v1/namespaces/${namespace}/secrets`;
    const body = {
      apiVersion: "v1",
      kind: "Secret",
      type: "Opaque",
      metadata: {
        name: WEBHOOK_SECRET,
        namespace,
        labels: { "app.kubernetes.io/name": "fairway", "app.kubernetes.io/component": "operator" },
        ...(resourceVersion === undefined ? {} : { resourceVersion }),
      },
      data: dataOf(set),
    };
    try {
      if (resourceVersion === undefined) await api.call("POST", collection, { body, signal });
      else await api.call("PUT", `${collection}/${WEBHOOK_SECRET}`, { body, signal });
      return true;
    } catch (error) {
      if (isAlreadyExists(error) || isConflict(error)) return false;
      throw error;
    }
  }
}

function bundleOf({ authority, next, previous }: CertificateSet): string {
  return [authority.certificate, next?.certificate, previous]
    .filter(certificate => certificate !== undefined)
    .map(certificate => `${certificate.trim()}\n`)
    .join("");
}

function dataOf(set: CertificateSet): Record<string, string> {
  const { authority, serving, next, previous } = set;
  const text: Record<string, string> = {
    [KEYS.bundle]:
      [authority.certificate, previous ?? ""]
        .map(pem => pem.trim())
        .join("\n")
        .trim() + "\n",
    [KEYS.authorityKey]: authority.key,
    [KEYS.servingCertificate]: serving.certificate,
    [KEYS.servingKey]: serving.key,
    ...(next === undefined ? {} : { [KEYS.nextCertificate]: next.certificate, [KEYS.nextKey]: next.key }),
  };
  return Object.fromEntries(Object.entries(text).map(([key, value]) => [key, Buffer.from(value).toString("base64")]));
}

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

/** `undefined` when something is missing, unreadable or does not belong together. */
function parseSet(data: Readonly<Record<string, string>> | undefined): CertificateSet | undefined {
  const text = (key: string) => Buffer.from(data?.[key] ?? "", "base64").toString("utf8");
  const [current, previous] = text(KEYS.bundle).match(PEM_CERTIFICATE) ?? [];
  const [serving] = text(KEYS.servingCertificate).match(PEM_CERTIFICATE) ?? [];
  const [next] = text(KEYS.nextCertificate).match(PEM_CERTIFICATE) ?? [];
  const keys = { authority: text(KEYS.authorityKey), serving: text(KEYS.servingKey), next: text(KEYS.nextKey) };
  if (current === undefined || serving === undefined || keys.authority === "" || keys.serving === "") return undefined;
  if (!belong(current, serving)) return undefined;
  return {
    authority: { certificate: current, key: keys.authority },
    serving: { certificate: serving, key: keys.serving },
    next: next === undefined || keys.next === "" ? undefined : { certificate: next, key: keys.next },
    previous,
  };
}

function belong(authority: string, serving: string): boolean {
  try {
    return new X509Certificate(serving).verify(new X509Certificate(authority).publicKey);
  } catch {
    // Not a certificate at all.
    return false;
  }
}

function factsOf(pem: string): CertificateFacts {
  const certificate = new X509Certificate(pem);
  return { notBeforeMs: Date.parse(certificate.validFrom), notAfterMs: Date.parse(certificate.validTo) };
}

function factsInUse({ authority, serving, next }: CertificateSet): CertificateFactsInUse {
  const names = new X509Certificate(serving.certificate).subjectAltName ?? "";
  return {
    authority: factsOf(authority.certificate),
    serving: {
      ...factsOf(serving.certificate),
      hosts: names.split(", ").map(name => name.replace(/^(DNS|IP Address):/, "")),
    },
    next: next === undefined ? undefined : { announcedMs: factsOf(next.certificate).notBeforeMs + BACKDATE_MS },
  };
}
