import type { V1Deployment, V1EndpointSlice, V1Pod, V1Service } from "@kubernetes/client-node";
import type { ObjectMeta } from "../runtime/types.ts";

/** Kubernetes' own kinds as they travel in JSON: read-only, every field may be absent, times are texts. */
type Json<T> = T extends Date
  ? string
  : T extends readonly (infer E)[]
    ? readonly Json<E>[]
    : T extends object
      ? { readonly [K in keyof T]?: Json<T[K]> | undefined }
      : T;

type Kind<T> = Omit<Json<T>, "metadata"> & { readonly metadata?: ObjectMeta | undefined };

export type Deployment = Kind<V1Deployment>;
export type Pod = Kind<V1Pod>;
export type CoreService = Kind<V1Service>;
export type EndpointSlice = Kind<V1EndpointSlice>;

export type PodSpec = NonNullable<NonNullable<NonNullable<Deployment["spec"]>["template"]>["spec"]>;
export type PodContainer = NonNullable<PodSpec["containers"]>[number];
export type PodEnvVar = NonNullable<PodContainer["env"]>[number];
export type PodProbe = NonNullable<PodContainer["readinessProbe"]>;
export type PodResources = NonNullable<PodContainer["resources"]>;
export type PodContainerStatus = NonNullable<NonNullable<Pod["status"]>["containerStatuses"]>[number];
export type ServicePort = NonNullable<NonNullable<CoreService["spec"]>["ports"]>[number];
