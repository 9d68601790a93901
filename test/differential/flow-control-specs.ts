import fc from "fast-check";

/**
 * Specs of flow-control objects, good and bad, for comparing our verdict with that of Kubernetes' API server: most fields are
 * right, some are wrong in one of the ways that users get them wrong.
 */
export interface FlowControlCase {
  readonly kind: "PriorityLevelConfiguration" | "FlowSchema";
  readonly name: string;
  readonly spec: Readonly<Record<string, unknown>>;
}

/** Mostly `good`; `bad` about once in eight. */
const mostly = <T, B>(good: fc.Arbitrary<T>, ...bad: readonly B[]): fc.Arbitrary<T | B> =>
  fc.oneof({ weight: 8, arbitrary: good }, { weight: 1, arbitrary: fc.constantFrom(...bad) });

/** The field, or no field. */
const maybe = <T>(value: fc.Arbitrary<T>, weight = 1): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 1, arbitrary: fc.constant(undefined) }, { weight, arbitrary: value });

const percent = mostly(fc.integer({ min: 0, max: 100 }), -1, 101, 1000);
const shares = mostly(fc.integer({ min: 0, max: 200 }), -1, -100);

const queuing = fc.record({
  queues: maybe(mostly(fc.constantFrom(1, 2, 16, 64, 128, 512, 1024), 0, -1, 10_000_000, 10_000_001), 3),
  handSize: maybe(mostly(fc.integer({ min: 1, max: 10 }), 0, -1, 64, 2000), 3),
  queueLengthLimit: maybe(mostly(fc.integer({ min: 1, max: 100 }), 0, -5), 2),
});

const limitResponse = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant("Queue"), queuing: maybe(queuing, 8) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant("Reject"),
      queuing: fc.constantFrom(undefined, undefined, undefined, {}),
    }),
  },
  { weight: 1, arbitrary: fc.constantFrom({ type: "Drop" }, { type: "" }, {}) },
);

const limited = fc.record({
  nominalConcurrencyShares: maybe(shares, 3),
  lendablePercent: maybe(percent),
  borrowingLimitPercent: maybe(mostly(fc.integer({ min: 0, max: 500 }), -1)),
  limitResponse: maybe(limitResponse, 15),
});
const exempt = fc.record({ nominalConcurrencyShares: maybe(shares), lendablePercent: maybe(percent) });

const levelCase: fc.Arbitrary<FlowControlCase> = fc.record({
  kind: fc.constant("PriorityLevelConfiguration" as const),
  name: mostly(fc.constant("differential"), "exempt", "catch-all", "Not-A-Name"),
  spec: fc.oneof(
    { weight: 8, arbitrary: fc.record({ type: fc.constant("Limited"), limited, exempt: maybe(exempt).map(rarely) }) },
    {
      weight: 2,
      arbitrary: fc.record({ type: fc.constant("Exempt"), exempt: maybe(exempt), limited: maybe(limited).map(rarely) }),
    },
    { weight: 1, arbitrary: fc.record({ type: fc.constantFrom("limited", "", "Queue"), limited }) },
    { weight: 1, arbitrary: fc.constantFrom({}, { type: "Limited" }, { type: "Exempt" }) },
  ),
});

/** Half of what is there goes, so that a field that does not belong is not there as often as one that does. */
function rarely<T extends object>(value: T | undefined): T | undefined {
  return value !== undefined && Object.keys(value).length % 2 === 0 ? undefined : value;
}

const userName = mostly(fc.constantFrom("alice", "*", "system:admin"), "");
const subject = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("User"), user: maybe(fc.record({ name: userName }), 12) }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("Group"), group: maybe(fc.record({ name: userName }), 12) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("ServiceAccount"),
      serviceAccount: maybe(
        fc.record({
          name: mostly(fc.constantFrom("default", "*", "a.b"), "", "Not A Name"),
          namespace: mostly(fc.constantFrom("default", "team-a"), "", "*", "a.b", "UPPER"),
        }),
        12,
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      { kind: "Robot", user: { name: "x" } },
      { kind: "User", user: { name: "x" }, group: { name: "y" } },
      { kind: "Group", group: { name: "y" }, serviceAccount: { name: "a", namespace: "b" } },
      { kind: "ServiceAccount", serviceAccount: { name: "a", namespace: "b" }, user: { name: "x" } },
      {},
    ),
  },
);

const listOf = (...words: string[]) => fc.uniqueArray(fc.constantFrom(...words), { minLength: 1, maxLength: 3 });
const verbs = mostly(
  fc.oneof(listOf("get", "list", "create", "update", "patch", "delete", "watch", "proxy"), fc.constant(["*"])),
  [],
  ["*", "get"],
  ["GET"],
  ["options"],
  ["get", "get"],
);

const resourceRule = fc.record({
  verbs,
  apiGroups: mostly(fc.constantFrom(["*"], [""], ["serving.knative.dev"], ["a", "b"]), [], ["*", "apps"]),
  resources: mostly(fc.constantFrom(["*"], ["services"], ["services/blue", "services"]), [], ["services", "*"]),
  clusterScope: maybe(fc.boolean()),
  namespaces: maybe(
    mostly(fc.constantFrom(["*"], ["default"], ["team-a", "team-b"]), [], ["*", "default"], ["UPPER"], ["a.b"]),
    8,
  ),
});

const nonResourceRule = fc.record({
  verbs,
  nonResourceURLs: mostly(
    fc.constantFrom(["*"], ["/"], ["/healthz"], ["/api/*"], ["/a", "/b/*"], ["/*"]),
    [],
    ["*", "/a"],
    ["healthz"],
    ["/a b"],
    ["/a//b"],
    ["/a*"],
    ["/*/b"],
    [""],
  ),
});

const rule = fc.record({
  subjects: mostly(fc.array(subject, { minLength: 1, maxLength: 2 }), []),
  resourceRules: maybe(fc.array(resourceRule, { maxLength: 2 }), 3),
  nonResourceRules: maybe(fc.array(nonResourceRule, { maxLength: 2 })),
});

const schemaCase: fc.Arbitrary<FlowControlCase> = fc.record({
  kind: fc.constant("FlowSchema" as const),
  name: mostly(fc.constant("differential"), "exempt", "catch-all", "Not-A-Name"),
  spec: fc.record({
    priorityLevelConfiguration: mostly(
      fc.constantFrom({ name: "global-default" }, { name: "nowhere" }),
      { name: "" },
      { name: "A B" },
      {},
    ),
    matchingPrecedence: maybe(mostly(fc.integer({ min: 2, max: 10_000 }), 0, 1, -1, 10_001), 3),
    distinguisherMethod: maybe(
      mostly(fc.constantFrom({ type: "ByUser" }, { type: "ByNamespace" }), { type: "ByMood" }, {}),
    ),
    rules: maybe(fc.array(rule, { maxLength: 2 }), 6),
  }),
});

/** `count` cases of each kind; the same for the same seed. */
export function flowControlCases(seed: number, count: number): FlowControlCase[] {
  const sample = (arbitrary: fc.Arbitrary<FlowControlCase>) => fc.sample(arbitrary, { seed, numRuns: count });
  // As JSON, so that an absent field is absent.
  return JSON.parse(JSON.stringify([...sample(levelCase), ...sample(schemaCase)])) as FlowControlCase[];
}
