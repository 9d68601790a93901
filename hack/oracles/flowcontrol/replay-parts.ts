import type { AllocationClass } from "../../../core/flowcontrol/allocation.ts";
import { allocateSeats } from "../../../core/flowcontrol/allocation.ts";
import {
  MANDATORY_FLOW_SCHEMAS,
  MANDATORY_PRIORITY_LEVELS,
  SUGGESTED_FLOW_SCHEMAS,
  SUGGESTED_PRIORITY_LEVELS,
} from "../../../core/flowcontrol/bootstrap.ts";
import { Classifier } from "../../../core/flowcontrol/classifier.ts";
import { hashFlow } from "../../../core/flowcontrol/flow-hash.ts";
import type { FlowSchemaSpec } from "../../../core/flowcontrol/objects.ts";
import { compareFlowSchemas } from "../../../core/flowcontrol/objects.ts";
import { RetryAfterTracker } from "../../../core/flowcontrol/retry-after.ts";
import { Dealer, ShuffleShardingError } from "../../../core/flowcontrol/shuffle-sharding.ts";
import type { Attributes, Named } from "./replay-controller.ts";
import { attributesOf } from "./replay-controller.ts";
import { parseHash } from "./replay-queue-set.ts";
import { mustEqual } from "./unequal.ts";

/** See parts.go. */
export type PartScenario = { readonly n: number } & (
  | {
      readonly kind: "bootstrap";
      readonly mandatoryLevels: readonly unknown[];
      readonly suggestedLevels: readonly unknown[];
      readonly mandatorySchemas: readonly unknown[];
      readonly suggestedSchemas: readonly unknown[];
    }
  | {
      readonly kind: "dealer";
      readonly queues: number;
      readonly handSize: number;
      readonly error?: boolean;
      readonly deals: readonly { schema: string; flow: string; hash: string; hand: readonly number[] | null }[];
    }
  | {
      readonly kind: "allocation";
      readonly problems: readonly {
        sum: number;
        classes: readonly (readonly [target: number, lower: number, upper: number])[];
        seats: readonly number[] | null;
        fair: number;
      }[];
    }
  | { readonly kind: "retry"; readonly refusals: readonly (readonly [passedS: number, retryAfterS: number])[] }
  | {
      readonly kind: "classify";
      readonly schemas: readonly Named<FlowSchemaSpec>[];
      readonly requests: readonly { a: Attributes; schema: string }[];
    }
);

/** The original sorts equal bounds in no fixed order and so sums in another order than ours. */
const CLOSE = 1e-9;

export function replayPart(scenario: PartScenario): void {
  switch (scenario.kind) {
    case "bootstrap":
      mustEqual("mandatory levels", "specs", MANDATORY_PRIORITY_LEVELS, scenario.mandatoryLevels);
      mustEqual("suggested levels", "specs", SUGGESTED_PRIORITY_LEVELS, scenario.suggestedLevels);
      mustEqual("mandatory schemas", "specs", MANDATORY_FLOW_SCHEMAS, scenario.mandatorySchemas);
      mustEqual("suggested schemas", "specs", SUGGESTED_FLOW_SCHEMAS, scenario.suggestedSchemas);
      return;
    case "dealer": {
      const dealer = dealerOf(scenario.queues, scenario.handSize);
      const where = `${scenario.queues} queues, hand ${scenario.handSize}`;
      mustEqual(where, "refused", dealer === undefined, scenario.error ?? false);
      for (const { schema, flow, hash, hand } of scenario.deals) {
        mustEqual(where, `hash of ${schema}, ${flow}`, hashFlow(schema, flow), parseHash(hash));
        if (dealer !== undefined) mustEqual(where, `hand of ${hash}`, dealer.deal(parseHash(hash)), hand);
      }
      return;
    }
    case "allocation":
      for (const [i, { sum, classes, seats, fair }] of scenario.problems.entries()) {
        const ours = allocateSeats(
          sum,
          classes.map(([target, lowerBound, upperBound]): AllocationClass => ({ target, lowerBound, upperBound })),
        );
        const where = `problem ${i}`;
        mustEqual(where, "possible", ours.ok, seats !== null);
        if (!ours.ok || seats === null) continue;
        const close = (a: number, b: number): boolean => Math.abs(a - b) <= CLOSE * Math.max(1, Math.abs(a));
        if (!seats.every((theirs, j) => close(theirs, ours.seats[j]!))) mustEqual(where, "seats", ours.seats, seats);
        if (!close(fair, ours.fairProportion)) mustEqual(where, "fair proportion", ours.fairProportion, fair);
      }
      return;
    case "retry": {
      const tracker = new RetryAfterTracker();
      let second = 1_700_000_000;
      for (const [i, [passedS, retryAfterS]] of scenario.refusals.entries()) {
        second += passedS;
        mustEqual(`refusal ${i}`, "Retry-After", tracker.refuse("level", second * 1000), retryAfterS);
      }
      return;
    }
    case "classify": {
      const schemas = scenario.schemas.map(object => ({ ...object, uid: "" })).sort(compareFlowSchemas);
      const classifier = new Classifier(schemas);
      for (const { a, schema } of scenario.requests) {
        const where = JSON.stringify(a);
        mustEqual(where, "schema", classifier.classify(attributesOf(a))?.name ?? "", schema);
        mustEqual(where, "explained schema", classifier.explain(attributesOf(a)).schema?.name ?? "", schema);
      }
    }
  }
}

function dealerOf(queues: number, handSize: number): Dealer | undefined {
  try {
    return new Dealer(queues, handSize);
  } catch (error) {
    if (error instanceof ShuffleShardingError) return undefined;
    throw error;
  }
}
