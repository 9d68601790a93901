import { parseQuantity } from "../../meta/quantity.ts";
import type { RevisionSpec } from "./types.ts";

/** What the pods of a revision may use, read from the limits of its containers. */

type Container = RevisionSpec["containers"][number];

const limitsOf = (container: Container) => container.resources?.limits ?? {};

/** CPUs of a pod: the sum of the limits of its containers; undefined when one of them has none. */
export function podCpuLimit(spec: RevisionSpec): number | undefined {
  let sum = 0;
  for (const container of spec.containers) {
    const cpus = parseQuantity(limitsOf(container)["cpu"] ?? "");
    if (cpus === undefined) return undefined;
    sum += cpus;
  }
  return sum;
}

/** True when a container has a limit of a GPU, whoever's. */
export function usesGpu(spec: RevisionSpec): boolean {
  return spec.containers.some(container => Object.keys(limitsOf(container)).some(key => key.endsWith("/gpu")));
}
