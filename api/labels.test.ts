import { expect, test } from "vitest";
import { isTrackingKey, withoutTracking } from "./labels.ts";

test("tracking marks of Argo CD, Flux, Helm and kubectl stay on the object they were put on (knative/serving#2783)", () => {
  expect(
    withoutTracking({
      team: "blue",
      "app.kubernetes.io/instance": "my-argo-app",
      "argocd.argoproj.io/tracking-id": "my-argo-app:serving.knative.dev/Service:ns/hello",
      "kustomize.toolkit.fluxcd.io/name": "apps",
      "meta.helm.sh/release-name": "hello",
      "kubectl.kubernetes.io/last-applied-configuration": "{}",
    }),
  ).toEqual({ team: "blue" });
  expect(withoutTracking(undefined)).toEqual({});
});

test("a user's own keys are not taken for tracking marks", () => {
  for (const key of ["app", "app.kubernetes.io/name", "app.kubernetes.io/part-of", "example.com/argocd"]) {
    expect(isTrackingKey(key)).toBe(false);
  }
});
