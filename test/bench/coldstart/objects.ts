import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../../hack/kit/install.ts";
import type { AnyObject } from "../../../hack/kit/kube.ts";

const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { readonly version: string };

export const SAMPLE_PORT = 8080;
const CONTAINER = {
  image: `fairway.dev/sample:${version}`,
  resources: { requests: { cpu: "5m", memory: "16Mi" } },
};

/** The sample server as a service, which goes to zero soon. */
export function coldService(namespace: string, name: string, window: string): AnyObject {
  return {
    apiVersion: "serving.knative.dev/v1",
    kind: "Service",
    metadata: { name, namespace },
    spec: {
      template: {
        metadata: { annotations: { "autoscaling.knative.dev/window": window } },
        spec: { containers: [CONTAINER] },
      },
    },
  };
}

/**
 * The same server in a pod that nobody looks after.
 *
 * @param token false: no ServiceAccount token, and so no volume that the kubelet has to wait for
 */
export function barePod(namespace: string, name: string, token: boolean): AnyObject {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, labels: { bench: "bare" } },
    spec: {
      enableServiceLinks: false,
      ...(token ? {} : { automountServiceAccountToken: false }),
      containers: [{ name: "app", ...CONTAINER, ports: [{ containerPort: SAMPLE_PORT }] }],
    },
  };
}
