/**
 * Which FlowSchema a request belongs to: the first, in order of precedence, that has a rule for it.
 *
 * Schemas are compiled to two tries, one for resource rules (who, namespace, service, header, verb) and one for path
 * rules (who, path, header, verb). A request follows, at each step, the branch of its own value and the branch of `*`,
 * and leaves out branches that only lead to schemas after the best one found. So the cost depends on the branches that
 * fit the request, not on how many schemas there are that do not. Rules found at the leaves are checked in full: the
 * tries only leave out what cannot match.
 */
import type { FlowSchemaObject, HeaderMatch, NonResourceRule, PolicyRule, ResourceRule, Subject } from "./objects.ts";
import { CATCH_ALL } from "./objects.ts";

/** What a resource rule looks at. */
export interface ResourceAttributes {
  readonly apiGroup: string;
  readonly resource: string;
  /** Empty without one. */
  readonly subresource: string;
  /** Empty for what is in no namespace. */
  readonly namespace: string;
  /** Name of the service, for the extension `serviceNames`. */
  readonly name: string;
}

/** What classification looks at in a request. */
export interface RequestAttributes {
  readonly user: string;
  readonly groups: readonly string[];
  readonly verb: string;
  /** Set for a request to a service: resource rules apply. */
  readonly resource: ResourceAttributes | undefined;
  /** Set for a request with a path: path rules apply. */
  readonly path: string | undefined;
  /** The value of a header by its lower-case name. */
  readonly header: (name: string) => string | undefined;
}

/** Why a rule does not match. */
export type Mismatch =
  | "subject"
  | "service name"
  | "header"
  | "no resource rule"
  | "no path rule"
  | "verb"
  | "resource"
  | "API group"
  | "namespace"
  | "path";

/** A schema that was tried in vain; `mismatches` has, for each of its rules, what stood against it. */
export interface SchemaMiss {
  readonly schema: FlowSchemaObject;
  readonly mismatches: readonly (readonly Mismatch[])[];
}

export interface Explanation {
  readonly schema: FlowSchemaObject | undefined;
  readonly missed: readonly SchemaMiss[];
}

/** True for the list that stands for every value. */
const isAny = (list: readonly string[]): boolean => list.length === 1 && list[0] === "*";
const contains = (list: readonly string[], value: string): boolean => isAny(list) || list.includes(value);

const SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:";

function subjectMatches(subject: Subject, { user, groups }: RequestAttributes): boolean {
  switch (subject.kind) {
    case "User":
      return subject.user !== undefined && (subject.user.name === "*" || subject.user.name === user);
    case "Group":
      return subject.group !== undefined && (subject.group.name === "*" || groups.includes(subject.group.name));
    case "ServiceAccount": {
      const account = subject.serviceAccount;
      if (account === undefined) return false;
      const namespacePrefix = `${SERVICE_ACCOUNT_PREFIX}${account.namespace}:`;
      return account.name === "*" ? user.startsWith(namespacePrefix) : user === namespacePrefix + account.name;
    }
  }
}

function headerMatches(match: HeaderMatch, request: RequestAttributes): boolean {
  const value = request.header(match.name.toLowerCase());
  if (value === undefined) return false;
  if (match.exact !== undefined && value !== match.exact) return false;
  return match.prefix === undefined || value.startsWith(match.prefix);
}

function resourceMismatch(rule: ResourceRule, verb: string, attributes: ResourceAttributes): Mismatch | undefined {
  if (!contains(rule.verbs, verb)) return "verb";
  const resource =
    attributes.subresource === "" ? attributes.resource : `${attributes.resource}/${attributes.subresource}`;
  if (!contains(rule.resources, resource)) return "resource";
  if (!contains(rule.apiGroups, attributes.apiGroup)) return "API group";
  const fits =
    attributes.namespace === "" ? rule.clusterScope === true : contains(rule.namespaces ?? [], attributes.namespace);
  return fits ? undefined : "namespace";
}

/** `/a`, `/a/` and `/a/*` all stand for what is below `/a/`; without a star also for themselves. */
const pathPrefix = (rulePath: string): string => {
  const path = rulePath.endsWith("*") ? rulePath.slice(0, -1) : rulePath;
  return path.endsWith("/") ? path : `${path}/`;
};

const pathMatches = (rulePath: string, path: string): boolean =>
  rulePath === "*" || rulePath === path || path.startsWith(pathPrefix(rulePath));

function pathMismatch(rule: NonResourceRule, verb: string, path: string): Mismatch | undefined {
  if (!contains(rule.verbs, verb)) return "verb";
  return rule.nonResourceURLs.some(rulePath => pathMatches(rulePath, path)) ? undefined : "path";
}

/** What holds for a rule's resource rules and path rules alike. */
function commonMismatch(rule: PolicyRule, request: RequestAttributes): Mismatch | undefined {
  if (!rule.subjects.some(subject => subjectMatches(subject, request))) return "subject";
  if (rule.serviceNames !== undefined && !isAny(rule.serviceNames)) {
    if (request.resource === undefined || !rule.serviceNames.includes(request.resource.name)) return "service name";
  }
  if (rule.headers !== undefined && !rule.headers.every(match => headerMatches(match, request))) return "header";
  return undefined;
}

/** All that stands against a rule; empty if it matches. */
function mismatches(rule: PolicyRule, request: RequestAttributes): Mismatch[] {
  const common = commonMismatch(rule, request);
  if (common !== undefined) return [common];
  const found: Mismatch[] = [];
  if (request.resource !== undefined) {
    if ((rule.resourceRules ?? []).length === 0) found.push("no resource rule");
    for (const resourceRule of rule.resourceRules ?? []) {
      const mismatch = resourceMismatch(resourceRule, request.verb, request.resource);
      if (mismatch === undefined) return [];
      found.push(mismatch);
    }
  }
  if (request.resource === undefined && request.path === undefined) found.push("no resource rule", "no path rule");
  if (request.path !== undefined) {
    if ((rule.nonResourceRules ?? []).length === 0) found.push("no path rule");
    for (const pathRule of rule.nonResourceRules ?? []) {
      const mismatch = pathMismatch(pathRule, request.verb, request.path);
      if (mismatch === undefined) return [];
      found.push(mismatch);
    }
  }
  return found;
}

/** One resource rule or path rule of a schema, at a leaf. `order` is its schema's place among all. */
interface Leaf {
  readonly order: number;
  readonly policy: PolicyRule;
  readonly rule: ResourceRule | NonResourceRule;
}

class TrieNode {
  /** The first schema that this branch leads to. */
  readonly order: number;
  readonly children = new Map<string, TrieNode>();
  /** Paths only: children by prefixes that end in `/`, and the longest of those. */
  readonly prefixes = new Map<string, TrieNode>();
  longestPrefix = 0;
  any: TrieNode | undefined;
  readonly leaves: Leaf[] = [];

  constructor(order: number) {
    this.order = order;
  }

  child(key: string | undefined, order: number): TrieNode {
    if (key === undefined) return (this.any ??= new TrieNode(order));
    let child = this.children.get(key);
    if (child === undefined) this.children.set(key, (child = new TrieNode(order)));
    return child;
  }

  prefixChild(prefix: string, order: number): TrieNode {
    let child = this.prefixes.get(prefix);
    if (child === undefined) this.prefixes.set(prefix, (child = new TrieNode(order)));
    this.longestPrefix = Math.max(this.longestPrefix, prefix.length);
    return child;
  }
}

/** The values a rule accepts at one step; `undefined` in place of a list: any. */
type Keys = readonly string[] | undefined;

/** Branches that one rule may fill; beyond that its longest lists are left to the check at the leaf. */
const MAX_BRANCHES = 4096;

const listKeys = (list: readonly string[]): Keys => (isAny(list) ? undefined : list);

function subjectKeys(subjects: readonly Subject[]): Keys {
  const keys: string[] = [];
  for (const subject of subjects) {
    const { user, group, serviceAccount } = subject;
    if (subject.kind === "User" && user !== undefined) {
      if (user.name === "*") return undefined;
      keys.push(`u ${user.name}`);
    } else if (subject.kind === "Group" && group !== undefined) {
      if (group.name === "*") return undefined;
      keys.push(`g ${group.name}`);
    } else if (subject.kind === "ServiceAccount" && serviceAccount !== undefined) {
      // A namespace has no colon; should one have, the check at the leaf decides.
      if (serviceAccount.namespace.includes(":")) return undefined;
      if (serviceAccount.name === "*") keys.push(`n ${serviceAccount.namespace}`);
      else keys.push(`u ${SERVICE_ACCOUNT_PREFIX}${serviceAccount.namespace}:${serviceAccount.name}`);
    }
  }
  return keys;
}

interface KnownSubject {
  readonly user: string;
  readonly keys: readonly string[];
  /** Where its keys lead in the path trie, the first schemas first. */
  readonly paths: readonly TrieNode[];
  /** What it asked for last, and the order of the first rule for that: most ask for the same again and again. */
  lastResource: ResourceAttributes | undefined;
  lastVerb: string;
  lastOrder: number;
}

function subjectKeysOf(user: string, groups: readonly string[]): string[] {
  const keys = [`u ${user}`];
  for (const group of groups) keys.push(`g ${group}`);
  if (user.startsWith(SERVICE_ACCOUNT_PREFIX)) {
    const end = user.indexOf(":", SERVICE_ACCOUNT_PREFIX.length);
    if (end >= 0) keys.push(`n ${user.slice(SERVICE_ACCOUNT_PREFIX.length, end)}`);
  }
  return keys;
}

/** By one header with an exact value, if the rule has any. */
function headerKeys(rule: PolicyRule): Keys {
  const exact = rule.headers?.find(match => match.exact !== undefined);
  return exact === undefined ? undefined : [`${exact.name.toLowerCase()}\n${exact.exact}`];
}

function namespaceKeys(rule: ResourceRule): Keys {
  const namespaces = rule.namespaces ?? [];
  if (isAny(namespaces)) return undefined;
  return rule.clusterScope === true ? [...namespaces, ""] : namespaces;
}

/** Leaves out the longest lists until the product of all fits. */
function bounded(steps: readonly Keys[]): Keys[] {
  const kept = [...steps];
  const branches = (): number => kept.reduce((product, keys) => product * (keys?.length ?? 1), 1);
  while (branches() > MAX_BRANCHES) {
    const longest = kept.reduce((best, keys, i) => ((keys?.length ?? 0) > (kept[best]?.length ?? 0) ? i : best), 0);
    kept[longest] = undefined;
  }
  return kept;
}

const NO_HEADERS: readonly string[] = [];

/** Where in the path trie the paths stand, below those who ask. */
const PATH_STEP = 1;

/** FlowSchemas compiled for matching. Immutable. */
export class Classifier {
  readonly schemas: readonly FlowSchemaObject[];
  readonly #fallback: FlowSchemaObject | undefined;
  readonly #resources = new TrieNode(0);
  readonly #paths = new TrieNode(0);
  /** By the list of groups, which an identity keeps from request to request. */
  readonly #subjects = new WeakMap<readonly string[], KnownSubject>();
  /** Some rule looks at headers. */
  #asksHeaders = false;
  /** Headers that some rule is found by. */
  readonly #headerNames = new Set<string>();

  /** @param schemas In the order in which they are to be tried (see `compareFlowSchemas`). */
  constructor(schemas: readonly FlowSchemaObject[]) {
    this.schemas = schemas;
    this.#fallback = this.schemas.find(schema => schema.name === CATCH_ALL);
    for (const [order, schema] of this.schemas.entries()) {
      for (const policy of schema.spec.rules ?? []) this.#compile(order, policy);
    }
  }

  /** The first schema that matches; else the one named catch-all; else undefined. */
  classify(request: RequestAttributes): FlowSchemaObject | undefined {
    const subject = this.#subjectOf(request);
    const headers = this.#headerNames.size === 0 ? NO_HEADERS : this.#headerKeysOf(request);
    let best = this.schemas.length;
    const { resource, path } = request;
    if (resource !== undefined) {
      // What headers say is not remembered.
      const isKnown =
        !this.#asksHeaders &&
        subject.lastVerb === request.verb &&
        subject.lastResource !== undefined &&
        isSameResource(subject.lastResource, resource);
      if (isKnown) best = subject.lastOrder;
      else {
        const steps = [subject.keys, [resource.namespace], [resource.name], headers, [request.verb]];
        best = search(this.#resources, 0, steps, request, best, checkResource);
        subject.lastResource = resource;
        subject.lastVerb = request.verb;
        subject.lastOrder = best;
      }
    }
    if (path !== undefined) {
      let steps: readonly (readonly string[])[] | undefined;
      for (const node of subject.paths) {
        if (node.order >= best) break;
        steps ??= [subject.keys, [path], headers, [request.verb]];
        best = search(node, PATH_STEP, steps, request, best, checkPath);
      }
    }
    return this.schemas[best] ?? this.#fallback;
  }

  #subjectOf({ user, groups }: RequestAttributes): KnownSubject {
    const known = this.#subjects.get(groups);
    if (known?.user === user) return known;
    const keys = subjectKeysOf(user, groups);
    const paths = [this.#paths.any, ...keys.map(key => this.#paths.children.get(key))]
      .filter(node => node !== undefined)
      .sort((a, b) => a.order - b.order);
    const subject: KnownSubject = { user, keys, paths, lastResource: undefined, lastVerb: "", lastOrder: 0 };
    this.#subjects.set(groups, subject);
    return subject;
  }

  #headerKeysOf(request: RequestAttributes): string[] {
    const keys: string[] = [];
    for (const name of this.#headerNames) {
      const value = request.header(name);
      if (value !== undefined) keys.push(`${name}\n${value}`);
    }
    return keys;
  }

  /** Tries one schema after the other, for people. */
  explain(request: RequestAttributes): Explanation {
    const missed: SchemaMiss[] = [];
    for (const schema of this.schemas) {
      const perRule = (schema.spec.rules ?? []).map(rule => mismatches(rule, request));
      if (perRule.some(found => found.length === 0)) return { schema, missed };
      missed.push({ schema, mismatches: perRule });
    }
    return { schema: this.#fallback, missed };
  }

  #compile(order: number, policy: PolicyRule): void {
    const who = subjectKeys(policy.subjects);
    if ((policy.headers?.length ?? 0) > 0) this.#asksHeaders = true;
    const headers = headerKeys(policy);
    const exactHeader = policy.headers?.find(match => match.exact !== undefined);
    if (exactHeader !== undefined) this.#headerNames.add(exactHeader.name.toLowerCase());
    const services = policy.serviceNames === undefined ? undefined : listKeys(policy.serviceNames);
    for (const rule of policy.resourceRules ?? []) {
      const steps = bounded([who, namespaceKeys(rule), services, headers, listKeys(rule.verbs)]);
      insert(this.#resources, steps, { order, policy, rule });
    }
    for (const rule of policy.nonResourceRules ?? []) {
      const paths = rule.nonResourceURLs.includes("*") ? undefined : rule.nonResourceURLs;
      const steps = bounded([who, paths, headers, listKeys(rule.verbs)]);
      insert(this.#paths, steps, { order, policy, rule }, PATH_STEP);
    }
  }
}

function insert(node: TrieNode, steps: readonly Keys[], leaf: Leaf, pathStep = -1, depth = 0): void {
  if (depth === steps.length) {
    node.leaves.push(leaf);
    return;
  }
  const keys = steps[depth];
  if (keys === undefined) {
    insert(node.child(undefined, leaf.order), steps, leaf, pathStep, depth + 1);
    return;
  }
  for (const key of new Set(keys)) {
    insert(node.child(key, leaf.order), steps, leaf, pathStep, depth + 1);
    if (depth === pathStep) insert(node.prefixChild(pathPrefix(key), leaf.order), steps, leaf, pathStep, depth + 1);
  }
}

const isSameResource = (a: ResourceAttributes, b: ResourceAttributes): boolean =>
  a.name === b.name &&
  a.namespace === b.namespace &&
  a.subresource === b.subresource &&
  a.resource === b.resource &&
  a.apiGroup === b.apiGroup;

/** What a leaf's own rule has against the request. */
type RuleCheck = (rule: ResourceRule | NonResourceRule, request: RequestAttributes) => Mismatch | undefined;

const checkResource: RuleCheck = (rule, request) =>
  resourceMismatch(rule as ResourceRule, request.verb, request.resource!);
const checkPath: RuleCheck = (rule, request) => pathMismatch(rule as NonResourceRule, request.verb, request.path!);

/** The order of the first schema below `node` that matches, or `best` if none comes before that. */
function search(
  node: TrieNode,
  depth: number,
  steps: readonly (readonly string[])[],
  request: RequestAttributes,
  best: number,
  check: RuleCheck,
): number {
  if (depth === steps.length) {
    for (const { order, policy, rule } of node.leaves) {
      if (order >= best) break;
      if (check(rule, request) === undefined && commonMismatch(policy, request) === undefined) return order;
    }
    return best;
  }
  const { children, prefixes, any } = node;
  if (children.size > 0) {
    for (const key of steps[depth]!) {
      const child = children.get(key);
      if (child !== undefined && child.order < best) best = search(child, depth + 1, steps, request, best, check);
    }
  }
  if (prefixes.size > 0) {
    const path = request.path!;
    for (let end = path.indexOf("/"); end >= 0 && end < node.longestPrefix; end = path.indexOf("/", end + 1)) {
      const child = prefixes.get(path.slice(0, end + 1));
      if (child !== undefined && child.order < best) best = search(child, depth + 1, steps, request, best, check);
    }
  }
  return any !== undefined && any.order < best ? search(any, depth + 1, steps, request, best, check) : best;
}
