import { describe, expect, test } from "vitest";
import { refusal } from "../../meta/field-list.ts";
import { setFlowSchemaDefaults, setPriorityLevelDefaults } from "./defaults.ts";
import type {
  FlowSchemaSpec,
  LimitedPriorityLevelConfiguration,
  PolicyRulesWithSubjects,
  PriorityLevelConfigurationSpec,
} from "./types.ts";
import { validateFlowSchema, validatePriorityLevel } from "./validate.ts";

const level = (spec: PriorityLevelConfigurationSpec, name = "gold") => {
  const object = setPriorityLevelDefaults({ metadata: { name }, spec });
  return refusal("PriorityLevelConfiguration.flowcontrol.fairway.dev", name, validatePriorityLevel(object))?.replace(
    /^.* is invalid: /,
    "",
  );
};
const limited = (spec: Partial<LimitedPriorityLevelConfiguration>) =>
  level({ type: "Limited", limited: { limitResponse: { type: "Reject" }, ...spec } });
const queued = (queuing: object) => limited({ limitResponse: { type: "Queue", queuing } });

describe("PriorityLevelConfiguration", () => {
  test("absent numbers and the zeros of Go clients get upstream's defaults, a zero of shares stays", () => {
    expect(
      setPriorityLevelDefaults({
        metadata: { name: "gold" },
        spec: { type: "Limited", limited: { limitResponse: { type: "Queue", queuing: { queues: 0 } } } },
      }).spec,
    ).toEqual({
      type: "Limited",
      limited: {
        nominalConcurrencyShares: 30,
        lendablePercent: 0,
        limitResponse: { type: "Queue", queuing: { queues: 64, handSize: 8, queueLengthLimit: 50 } },
      },
    });
    expect(
      setPriorityLevelDefaults({
        metadata: { name: "exempt" },
        spec: { type: "Exempt", exempt: {} },
      }).spec.exempt,
    ).toEqual({ nominalConcurrencyShares: 0, lendablePercent: 0 });
    expect(limited({ nominalConcurrencyShares: 0 })).toBeUndefined();
  });

  test.each<[PriorityLevelConfigurationSpec, string]>([
    [{ type: "Limited" }, "spec.limited: Required value: must not be empty when type is Limited"],
    [
      { type: "Limited", limited: { limitResponse: { type: "Queue" } } },
      "spec.limited.limitResponse.queuing: Required value: must not be empty if limited.limitResponse.type is Limited",
    ],
    [
      { type: "Limited", limited: { limitResponse: { type: "Reject", queuing: {} } } },
      "spec.limited.limitResponse.queuing: Forbidden: must be nil if limited.limitResponse.type is not Limited",
    ],
    [{ type: "Exempt" }, "spec.type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'"],
    [
      { type: "Limited", limited: { limitResponse: { type: "Reject" } }, exempt: {} },
      "spec.exempt: Forbidden: must be nil if the type is Limited",
    ],
  ])("%j", (spec, message) => {
    expect(level(spec)).toBe(message);
  });

  test("numbers have bounds", () => {
    expect(limited({ nominalConcurrencyShares: -1, lendablePercent: 101, borrowingLimitPercent: -1 })).toBe(
      "[spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer, " +
        "spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive, " +
        "spec.limited.borrowingLimitPercent: Invalid value: -1: if specified, must be a non-negative integer]",
    );
    const at = "spec.limited.limitResponse.queuing";
    expect(queued({ queueLengthLimit: -1 })).toBe(`${at}.queueLengthLimit: Invalid value: -1: must be positive`);
    expect(queued({ queues: 10_000_001, handSize: 1 })).toBe(
      `${at}.queues: Invalid value: 10000001: must not be greater than 10000000`,
    );
    expect(queued({ queues: 4 })).toBe(`${at}.handSize: Invalid value: 8: should not be greater than queues (4)`);
    expect(queued({ queues: 512, handSize: 7 })).toBe(
      `${at}.handSize: Invalid value: 7: required entropy bits of deckSize 512 and handSize 7 should not be greater than 60`,
    );
    expect(queued({ queues: 512, handSize: 6 })).toBeUndefined();
  });

  test("of a mandatory level only the shares of exempt may be chosen", () => {
    const mandatory = new Map<string, PriorityLevelConfigurationSpec>([
      ["exempt", { type: "Exempt", exempt: { lendablePercent: 0 } }],
      [
        "catch-all",
        {
          type: "Limited",
          limited: { nominalConcurrencyShares: 5, limitResponse: { type: "Reject" } },
        },
      ],
    ]);
    const check = (name: string, spec: PriorityLevelConfigurationSpec) =>
      validatePriorityLevel(setPriorityLevelDefaults({ metadata: { name }, spec }), mandatory).map(e => e.text);
    expect(check("exempt", { type: "Exempt", exempt: { nominalConcurrencyShares: 5 } })).toEqual([]);
    expect(check("catch-all", mandatory.get("catch-all")!)).toEqual([]);
    expect(check("catch-all", { type: "Limited", limited: { limitResponse: { type: "Reject" } } })[0]).toContain(
      "spec of 'catch-all' must equal the fixed value",
    );
  });
});

describe("FlowSchema", () => {
  const schema = (spec: Partial<FlowSchemaSpec>, name = "tenants") => {
    const object = setFlowSchemaDefaults({
      metadata: { name },
      spec: { priorityLevelConfiguration: { name: "gold" }, ...spec },
    });
    return validateFlowSchema(object).map(e => `${e.field}: ${e.text}`);
  };
  const rule = (change: Partial<PolicyRulesWithSubjects>) =>
    schema({
      rules: [
        {
          subjects: [{ kind: "User", user: { name: "*" } }],
          resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"] }],
          ...change,
        },
      ],
    });

  test("precedence: absent or 0 is 1000, 1 is exempt's alone", () => {
    const spec = { priorityLevelConfiguration: { name: "gold" }, matchingPrecedence: 0 };
    expect(setFlowSchemaDefaults({ metadata: {}, spec }).spec.matchingPrecedence).toBe(1000);
    expect(schema({ matchingPrecedence: 1 })).toEqual([
      "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1",
    ]);
    expect(schema({ matchingPrecedence: 1 }, "exempt")).toEqual([]);
    expect(schema({ matchingPrecedence: 10_001 })).toHaveLength(1);
    expect(schema({ matchingPrecedence: -1 })).toHaveLength(1);
  });

  test("a rule has subjects and something to match", () => {
    expect(rule({})).toEqual([]);
    expect(rule({ subjects: [], resourceRules: [] })).toEqual([
      "spec.rules[0].subjects: Required value: subjects must contain at least one value",
      "spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty",
    ]);
  });

  test("a subject is what its kind says and nothing else", () => {
    expect(rule({ subjects: [{ kind: "Group", user: { name: "x" } }] })).toEqual([
      "spec.rules[0].subjects[0].group: Required value: group is required when subject kind is 'Group'",
      "spec.rules[0].subjects[0].user: Forbidden: user is forbidden when subject kind is not 'User'",
    ]);
    expect(rule({ subjects: [{ kind: "ServiceAccount", serviceAccount: { name: "*", namespace: "" } }] })).toEqual([
      "spec.rules[0].subjects[0].serviceAccount.namespace: Required value: must specify namespace for service account",
    ]);
  });

  test("a star stands alone, verbs are known, namespaces are names", () => {
    const resource = (change: object) =>
      rule({ resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"], ...change }] });
    const at = "spec.rules[0].resourceRules[0]";
    expect(resource({ verbs: ["*", "get"] })).toEqual([
      `${at}.verbs: Invalid value: ["*","get"]: if '*' is present, must not specify other verbs`,
    ]);
    expect(resource({ verbs: ["GET"] })[0]).toMatch(/verbs: Unsupported value: \["GET"\]: supported values: "create"/);
    expect(resource({ namespaces: [] })[0]).toContain("must supply at least one namespace");
    expect(resource({ namespaces: [], clusterScope: true })).toEqual([]);
    expect(resource({ namespaces: ["A"] })[0]).toContain(
      "each member of this list must be '*' or a DNS-1123 label; a lowercase",
    );
  });

  test.each([
    ["", "must not be empty"],
    ["a", "must start with slash"],
    ["/a b", "must not contain white-space"],
    ["/a//b", "must not contain double slash"],
    ["/a*", "wildcard can only do suffix matching"],
    ["/*/b*", "wildcard can only do suffix matching"],
  ])("path %j %s", (url, problem) => {
    const errors = rule({ resourceRules: [], nonResourceRules: [{ verbs: ["get"], nonResourceURLs: [url] }] });
    expect(errors).toEqual([
      `spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: "${url}": ${problem}`,
    ]);
  });

  test("Fairway's extensions have rules of their own", () => {
    expect(rule({ serviceNames: ["hello", "*"] })[0]).toContain("must not specify other service names");
    expect(rule({ serviceNames: ["Hello"] })[0]).toContain("spec.rules[0].serviceNames[0]: Invalid value");
    expect(
      rule({
        headers: [
          { name: "X-Tenant", exact: "a" },
          { name: "X-Tier", prefix: "gold" },
        ],
      }),
    ).toEqual([]);
    expect(rule({ headers: [{ name: "X Tenant", exact: "a", prefix: "b" }] })).toHaveLength(2);
  });
});
