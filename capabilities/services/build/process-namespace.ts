import { sharesProcessNamespace } from "../../../api/autoscaling.ts";
import type { Revision } from "../../../api/serving/v1/types.ts";

/** By the pod's own field (where the feature is on) or the annotation, which needs no feature; undefined: nothing was said. */
export const sharedProcessNamespace = ({ spec, metadata }: Revision): boolean | undefined =>
  spec.shareProcessNamespace ?? (sharesProcessNamespace(metadata.annotations) ? true : undefined);
