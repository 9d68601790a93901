import type { ContainerStatus, Revision } from "../../../api/serving/v1/types.ts";
import type { Container } from "../../../api/serving/v1/pod-spec.ts";
import { DEFAULT_CONTAINER } from "../build/serving-container.ts";
import type { Pod, PodContainerStatus } from "../kinds.ts";

const DIGEST = /@sha256:[0-9a-f]{64}$/;

export interface ImageDigests {
  readonly containerStatuses: readonly ContainerStatus[];
  readonly initContainerStatuses: readonly ContainerStatus[];
}

/**
 * Which image each container of the revision runs: by the digest in the image's own name, else the one a pod of the revision
 * was seen to run, once seen for good. A container whose image no registry has a digest for (loaded by hand) has none.
 */
export function imageDigests(revision: Revision, pods: readonly Pod[]): ImageDigests {
  const { spec, status } = revision;
  const of = (
    containers: readonly Container[] | undefined,
    known: readonly ContainerStatus[] | undefined,
    seen: readonly PodContainerStatus[],
  ): readonly ContainerStatus[] =>
    (containers ?? []).map(container => {
      const name = container.name ?? DEFAULT_CONTAINER;
      const imageDigest =
        (container.image !== undefined && DIGEST.test(container.image) ? container.image : undefined) ??
        known?.find(entry => entry.name === name)?.imageDigest ??
        seen
          .find(entry => entry.name === name && DIGEST.test(entry.imageID ?? ""))
          ?.imageID?.replace(/^[a-z-]+:\/\//, "");
      return imageDigest === undefined ? { name } : { name, imageDigest };
    });
  return {
    containerStatuses: of(
      spec.containers,
      status?.containerStatuses,
      pods.flatMap(pod => pod.status?.containerStatuses ?? []),
    ),
    initContainerStatuses: of(
      spec.initContainers,
      status?.initContainerStatuses,
      pods.flatMap(pod => pod.status?.initContainerStatuses ?? []),
    ),
  };
}
