import { dns1123LabelErrors, dns1123SubdomainErrors } from "../../meta/dns.ts";
import { forbidden, invalid, notSupported, required } from "../../meta/field-list.ts";
import type { ListedError } from "../../meta/field-list.ts";
import { jsonEqual } from "../../meta/json.ts";
import { setFlowSchemaDefaults, setPriorityLevelDefaults } from "./defaults.ts";
import type {
  FlowSchema,
  FlowSchemaSpec,
  HeaderMatch,
  LimitedPriorityLevelConfiguration,
  LimitResponse,
  NonResourcePolicyRule,
  PolicyRulesWithSubjects,
  PriorityLevelConfiguration,
  PriorityLevelConfigurationSpec,
  QueuingConfiguration,
  ResourcePolicyRule,
  Subject,
} from "./types.ts";

/**
 * Rules of the flow-control kinds, applied after the defaults to what the CRD's schema let through: those of Kubernetes'
 * pkg/apis/flowcontrol/validation, with its messages. `mandatory` are the specs that are fixed, by the object's name.
 */

const EXEMPT = "exempt";

export function validatePriorityLevel(
  level: PriorityLevelConfiguration,
  mandatory: ReadonlyMap<string, object> = new Map(),
): ListedError[] {
  const { spec } = level;
  const name = level.metadata.name ?? "";
  const fixed = mandatory.get(name) as PriorityLevelConfigurationSpec | undefined;
  return [
    ...((name === EXEMPT) === (spec.type === "Exempt")
      ? []
      : [invalid("spec.type", spec.type, "must be 'Exempt' if and only if `name` is 'exempt'")]),
    ...(spec.type === "Exempt" ? validateExempt(spec) : validateLimited(spec)),
    ...(fixed === undefined
      ? []
      : validateFixedLevel(name, spec, setPriorityLevelDefaults({ metadata: {}, spec: fixed }).spec)),
  ];
}

function validateExempt({ limited, exempt }: PriorityLevelConfigurationSpec): ListedError[] {
  return [
    ...(limited === undefined ? [] : [forbidden("spec.limited", "must be nil if the type is not Limited")]),
    ...(exempt === undefined ? [] : validateShares("spec.exempt", exempt)),
  ];
}

function validateLimited({ limited, exempt }: PriorityLevelConfigurationSpec): ListedError[] {
  const borrowing = limited?.borrowingLimitPercent;
  return [
    ...(exempt === undefined ? [] : [forbidden("spec.exempt", "must be nil if the type is Limited")]),
    ...(limited === undefined
      ? [required("spec.limited", "must not be empty when type is Limited")]
      : [
          ...validateShares("spec.limited", limited),
          ...validateLimitResponse(limited.limitResponse),
          ...(borrowing !== undefined && borrowing < 0
            ? [invalid("spec.limited.borrowingLimitPercent", borrowing, "if specified, must be a non-negative integer")]
            : []),
        ]),
  ];
}

type Shares = Pick<LimitedPriorityLevelConfiguration, "nominalConcurrencyShares" | "lendablePercent">;

function validateShares(
  path: string,
  { nominalConcurrencyShares: shares = 0, lendablePercent = 0 }: Shares,
): ListedError[] {
  return [
    ...(shares < 0 ? [invalid(`${path}.nominalConcurrencyShares`, shares, "must be a non-negative integer")] : []),
    ...(lendablePercent < 0 || lendablePercent > 100
      ? [invalid(`${path}.lendablePercent`, lendablePercent, "must be between 0 and 100, inclusive")]
      : []),
  ];
}

function validateLimitResponse({ type, queuing }: LimitResponse): ListedError[] {
  const path = "spec.limited.limitResponse.queuing";
  if (type === "Reject") {
    const message = "must be nil if limited.limitResponse.type is not Limited";
    return queuing === undefined ? [] : [forbidden(path, message)];
  }
  return queuing === undefined
    ? [required(path, "must not be empty if limited.limitResponse.type is Limited")]
    : validateQueuing(path, queuing);
}

const MAX_QUEUES = 10_000_000;
/** Bits of a flow's hash that dealing a hand may use up. */
const MAX_HASH_BITS = 60;

function validateQueuing(path: string, queuing: QueuingConfiguration): ListedError[] {
  const { queues = 0, handSize = 0, queueLengthLimit = 0 } = queuing;
  const bits = Math.ceil(Math.log2(queues) * handSize);
  const entropy = `required entropy bits of deckSize ${queues} and handSize ${handSize} should not be greater than ${MAX_HASH_BITS}`;
  return [
    ...(queueLengthLimit <= 0 ? [invalid(`${path}.queueLengthLimit`, queueLengthLimit, "must be positive")] : []),
    ...(queues <= 0
      ? [invalid(`${path}.queues`, queues, "must be positive")]
      : queues > MAX_QUEUES
        ? [invalid(`${path}.queues`, queues, `must not be greater than ${MAX_QUEUES}`)]
        : []),
    ...(handSize <= 0
      ? [invalid(`${path}.handSize`, handSize, "must be positive")]
      : handSize > queues
        ? [invalid(`${path}.handSize`, handSize, `should not be greater than queues (${queues})`)]
        : bits > MAX_HASH_BITS
          ? [invalid(`${path}.handSize`, handSize, entropy)]
          : []),
  ];
}

/** Of the level `exempt` the shares may be chosen; nothing else of a mandatory level. */
function validateFixedLevel(
  name: string,
  spec: PriorityLevelConfigurationSpec,
  fixed: PriorityLevelConfigurationSpec,
): ListedError[] {
  if (name !== EXEMPT) return validateFixed(name, spec, fixed);
  return jsonEqual({ ...spec, exempt: fixed.exempt }, fixed)
    ? []
    : [invalid("spec", spec, `spec of '${name}' except the 'spec.exempt' field must equal the fixed value`)];
}

const validateFixed = (name: string, spec: object, fixed: object): ListedError[] =>
  jsonEqual(spec, fixed) ? [] : [invalid("spec", spec, `spec of '${name}' must equal the fixed value`)];

const MAX_PRECEDENCE = 10_000;

export function validateFlowSchema(
  schema: FlowSchema,
  mandatory: ReadonlyMap<string, object> = new Map(),
): ListedError[] {
  const { spec } = schema;
  const name = schema.metadata.name ?? "";
  const fixed = mandatory.get(name) as FlowSchemaSpec | undefined;
  const level = spec.priorityLevelConfiguration.name;
  return [
    ...validatePrecedence(name, spec.matchingPrecedence ?? 0),
    ...(level === ""
      ? [required("spec.priorityLevelConfiguration.name", "must reference a priority level")]
      : dns1123SubdomainErrors(level).map(error => invalid("spec.priorityLevelConfiguration.name", level, error))),
    ...(spec.rules ?? []).flatMap((rule, i) => validateRule(`spec.rules[${i}]`, rule)),
    ...(fixed === undefined
      ? []
      : validateFixed(name, spec, setFlowSchemaDefaults({ metadata: {}, spec: fixed }).spec)),
  ];
}

function validatePrecedence(name: string, precedence: number): ListedError[] {
  const path = "spec.matchingPrecedence";
  const only = "only the schema named 'exempt' may have matchingPrecedence 1";
  return [
    ...(precedence <= 0 ? [invalid(path, precedence, "must be a positive value")] : []),
    ...(precedence > MAX_PRECEDENCE ? [invalid(path, precedence, `must not be greater than ${MAX_PRECEDENCE}`)] : []),
    ...(precedence === 1 && name !== EXEMPT ? [invalid(path, precedence, only)] : []),
  ];
}

function validateRule(path: string, rule: PolicyRulesWithSubjects): ListedError[] {
  const { subjects, resourceRules = [], nonResourceRules = [], serviceNames, headers = [] } = rule;
  return [
    ...(subjects.length === 0 ? [required(`${path}.subjects`, "subjects must contain at least one value")] : []),
    ...subjects.flatMap((subject, i) => validateSubject(`${path}.subjects[${i}]`, subject)),
    ...(resourceRules.length === 0 && nonResourceRules.length === 0
      ? [required(path, "at least one of resourceRules and nonResourceRules has to be non-empty")]
      : []),
    ...resourceRules.flatMap((r, i) => validateResourceRule(`${path}.resourceRules[${i}]`, r)),
    ...nonResourceRules.flatMap((r, i) => validateNonResourceRule(`${path}.nonResourceRules[${i}]`, r)),
    ...(serviceNames === undefined ? [] : validateServiceNames(`${path}.serviceNames`, serviceNames)),
    ...headers.flatMap((header, i) => validateHeader(`${path}.headers[${i}]`, header)),
  ];
}

function validateSubject(path: string, subject: Subject): ListedError[] {
  const others = (["user", "group", "serviceAccount"] as const)
    .filter(field => SUBJECT_KIND[field] !== subject.kind && subject[field] !== undefined)
    .map(field =>
      forbidden(`${path}.${field}`, `${field} is forbidden when subject kind is not '${SUBJECT_KIND[field]}'`),
    );
  return [...validateSubjectOfKind(path, subject), ...others];
}

const SUBJECT_KIND = { user: "User", group: "Group", serviceAccount: "ServiceAccount" } as const;

function validateSubjectOfKind(path: string, { kind, user, group, serviceAccount }: Subject): ListedError[] {
  if (kind === "User" || kind === "Group") {
    const field = kind === "User" ? "user" : "group";
    const value = kind === "User" ? user : group;
    if (value === undefined)
      return [required(`${path}.${field}`, `${field} is required when subject kind is '${kind}'`)];
    return value.name === "" ? [required(`${path}.${field}.name`)] : [];
  }
  const at = `${path}.serviceAccount`;
  if (serviceAccount === undefined) {
    return [required(at, "serviceAccount is required when subject kind is 'ServiceAccount'")];
  }
  const { name, namespace } = serviceAccount;
  return [
    ...(name === ""
      ? [required(`${at}.name`)]
      : name === "*"
        ? []
        : dns1123SubdomainErrors(name).map(error => invalid(`${at}.name`, name, error))),
    ...(namespace === ""
      ? [required(`${at}.namespace`, "must specify namespace for service account")]
      : dns1123LabelErrors(namespace).map(error => invalid(`${at}.namespace`, namespace, error))),
  ];
}

const VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

function validateVerbs(path: string, verbs: readonly string[]): ListedError[] {
  if (verbs.length === 0) return [required(path, "verbs must contain at least one value")];
  if (verbs.includes("*")) return aloneIfAny(path, verbs, "verbs");
  return verbs.every(verb => VERBS.includes(verb)) ? [] : [notSupported(path, verbs, VERBS)];
}

const aloneIfAny = (path: string, list: readonly string[], what: string): ListedError[] =>
  list.includes("*") && list.length > 1
    ? [invalid(path, list, `if '*' is present, must not specify other ${what}`)]
    : [];

function validateResourceRule(path: string, rule: ResourcePolicyRule): ListedError[] {
  const { verbs, apiGroups, resources, namespaces = [], clusterScope = false } = rule;
  const introduction = "each member of this list must be '*' or a DNS-1123 label; ";
  return [
    ...validateVerbs(`${path}.verbs`, verbs),
    ...(apiGroups.length === 0
      ? [required(`${path}.apiGroups`, "resource rules must supply at least one api group")]
      : aloneIfAny(`${path}.apiGroups`, apiGroups, "api groups")),
    ...(resources.length === 0
      ? [required(`${path}.resources`, "resource rules must supply at least one resource")]
      : aloneIfAny(`${path}.resources`, resources, "resources")),
    ...(namespaces.length === 0 && !clusterScope
      ? [
          required(
            `${path}.namespaces`,
            "resource rules that are not cluster scoped must supply at least one namespace",
          ),
        ]
      : namespaces.includes("*")
        ? aloneIfAny(`${path}.namespaces`, namespaces, "namespaces")
        : namespaces.flatMap((namespace, i) =>
            dns1123LabelErrors(namespace).map(error =>
              invalid(`${path}.namespaces[${i}]`, namespace, introduction + error),
            ),
          )),
  ];
}

function validateNonResourceRule(path: string, { verbs, nonResourceURLs }: NonResourcePolicyRule): ListedError[] {
  const at = `${path}.nonResourceURLs`;
  return [
    ...validateVerbs(`${path}.verbs`, verbs),
    ...(nonResourceURLs.length === 0
      ? [required(at, "nonResourceURLs must contain at least one value")]
      : nonResourceURLs.includes("*")
        ? aloneIfAny(at, nonResourceURLs, "non-resource URLs")
        : nonResourceURLs.flatMap((url, i) => validatePath(`${at}[${i}]`, url))),
  ];
}

function validatePath(path: string, url: string): ListedError[] {
  if (url === "/") return [];
  const stars = url.split("*").length - 1;
  const problem =
    url === ""
      ? "must not be empty"
      : !url.startsWith("/")
        ? "must start with slash"
        : url.includes(" ")
          ? "must not contain white-space"
          : url.includes("//")
            ? "must not contain double slash"
            : stars > 1 || (stars === 1 && !url.endsWith("/*"))
              ? "wildcard can only do suffix matching"
              : undefined;
  return problem === undefined ? [] : [invalid(path, url, problem)];
}

function validateServiceNames(path: string, names: readonly string[]): ListedError[] {
  if (names.length === 0) return [required(path, "if specified, must contain at least one name")];
  if (names.includes("*")) return aloneIfAny(path, names, "service names");
  return names.flatMap((name, i) => dns1123LabelErrors(name).map(error => invalid(`${path}[${i}]`, name, error)));
}

/** Field names of HTTP are tokens (RFC 9110, 5.6.2). */
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

function validateHeader(path: string, { name, exact, prefix }: HeaderMatch): ListedError[] {
  const one = "exactly one of exact and prefix must be set";
  return [
    ...(HEADER_NAME.test(name) ? [] : [invalid(`${path}.name`, name, "must be the name of an HTTP header")]),
    ...((exact === undefined) === (prefix === undefined) ? [invalid(path, { name, exact, prefix }, one)] : []),
    ...(prefix === "" ? [invalid(`${path}.prefix`, prefix, "must not be empty")] : []),
  ];
}
