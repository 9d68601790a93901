import type { V1MutatingWebhookConfiguration, V1ValidatingWebhookConfiguration } from "@kubernetes/client-node";
import { isNotFound } from "./api-error.ts";
import { defineResource, type ResourceKind } from "./resource.ts";
import type { ClusterWriter, Lister, Reconciler } from "./types.ts";
import type { WebhookCertificates } from "./webhook-certificates.ts";

/** The name of both webhook configurations, as in manifests/base/operator-webhooks.yaml. */
export const WEBHOOK_CONFIGURATION = "fairway";
/** Owns `clientConfig.caBundle` of each webhook and nothing else: what is shipped as YAML leaves that field out. */
const CA_FIELD_MANAGER = "fairway-webhook-ca";

const scope = { fieldSelector: `metadata.name=${WEBHOOK_CONFIGURATION}` } as const;
export const mutatingWebhooks = defineResource<V1MutatingWebhookConfiguration>(
  "admissionregistration.k8s.io/v1",
  "MutatingWebhookConfiguration",
  "mutatingwebhookconfigurations",
  { namespaced: false, scope },
);
export const validatingWebhooks = defineResource<V1ValidatingWebhookConfiguration>(
  "admissionregistration.k8s.io/v1",
  "ValidatingWebhookConfiguration",
  "validatingwebhookconfigurations",
  { namespaced: false, scope },
);

type WebhookConfiguration = V1MutatingWebhookConfiguration | V1ValidatingWebhookConfiguration;

export interface WebhookCaOptions {
  readonly kind: ResourceKind<WebhookConfiguration>;
  readonly configurations: Lister<WebhookConfiguration>;
  readonly certificates: () => WebhookCertificates | undefined;
  readonly writer: ClusterWriter;
}

/** Puts the current CA bundle into one of the webhook configurations, whenever it is missing there or another. */
export function createWebhookCaReconciler({
  kind,
  configurations,
  certificates,
  writer,
}: WebhookCaOptions): Reconciler {
  return {
    name: `webhook-ca-${kind.plural}`,
    async reconcile(key, signal) {
      const configuration = configurations.get(key);
      const bundle = certificates()?.caBundle;
      if (configuration?.webhooks === undefined || bundle === undefined) return {};
      const caBundle = Buffer.from(bundle).toString("base64");
      if (configuration.webhooks.every(webhook => webhook.clientConfig.caBundle === caBundle)) return {};
      const { apiVersion, kind: name } = kind;
      const webhooks = configuration.webhooks.map(webhook => ({ name: webhook.name, clientConfig: { caBundle } }));
      const metadata = { name: key.name, uid: configuration.metadata?.uid };
      try {
        await writer.applyPart({ apiVersion, kind: name, metadata, webhooks }, CA_FIELD_MANAGER, signal);
      } catch (error) {
        // Deleted meanwhile; it comes back as an event.
        if (!isNotFound(error)) throw error;
      }
      return {};
    },
  };
}

/** True when every webhook of the configuration trusts exactly the current bundle; a missing configuration trusts nothing. */
export function trustsBundle(
  configuration: WebhookConfiguration | undefined,
  certificates: WebhookCertificates | undefined,
): boolean {
  if (configuration?.webhooks === undefined || certificates === undefined) return false;
  const caBundle = Buffer.from(certificates.caBundle).toString("base64");
  return configuration.webhooks.every(webhook => webhook.clientConfig.caBundle === caBundle);
}
