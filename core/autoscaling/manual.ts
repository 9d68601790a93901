/** Manual scaling: a fixed number of instances, whatever the load. The minimum and maximum do not apply. */
export interface ManualSpec {
  readonly instances: number;
}

export interface ManualExplanation {
  readonly winner: "manual";
  readonly instances: number;
}

/** Always valid: nothing has to be known of the load. An unreachable revision needs none. */
export function decideManual(
  spec: ManualSpec,
  reachable: boolean,
): { desired: number; explanation: ManualExplanation } {
  return { desired: reachable ? spec.instances : 0, explanation: { winner: "manual", instances: spec.instances } };
}
