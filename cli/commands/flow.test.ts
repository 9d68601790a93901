import { describe, expect, it } from "vitest";
import {
  MANDATORY_FLOW_SCHEMAS,
  MANDATORY_PRIORITY_LEVELS,
  SUGGESTED_FLOW_SCHEMAS,
  SUGGESTED_PRIORITY_LEVELS,
} from "../../core/flowcontrol/bootstrap.ts";
import { hashFlow } from "../../core/flowcontrol/flow-hash.ts";
import { Dealer } from "../../core/flowcontrol/shuffle-sharding.ts";
import type { GatewayStates } from "../flow/gateways.ts";
import { findTarget } from "../flow/find-target.ts";
import type { FlowExplanation } from "../flow/explain-flow.ts";
import { attributesOf, identityOf, splitAddress } from "../flow/request.ts";
import { apiRefusal, Refusal, runFairway } from "../testing/fake-context.ts";

const items = (list: readonly { readonly name: string; readonly spec: unknown }[]) =>
  list.map(({ name, spec }) => ({ metadata: { name, uid: `uid-${name}` }, spec }));

const GOLD = {
  name: "gold",
  spec: {
    priorityLevelConfiguration: { name: "workload-high" },
    matchingPrecedence: 500,
    distinguisherMethod: { type: "ByUser" },
    rules: [
      {
        subjects: [{ kind: "Group", group: { name: "gold" } }],
        resourceRules: [
          { verbs: ["get"], apiGroups: ["serving.knative.dev"], resources: ["services"], namespaces: ["shop"] },
        ],
      },
      {
        subjects: [{ kind: "User", user: { name: "root" } }],
        nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["/admin/*"] }],
      },
    ],
  },
};
const LOST = {
  name: "lost",
  spec: { ...GOLD.spec, priorityLevelConfiguration: { name: "gone" }, matchingPrecedence: 400 },
};

const ROUTE = {
  metadata: { name: "cart", namespace: "shop", labels: { "serving.knative.dev/service": "cart" } },
  status: {
    url: "http://cart.shop.example.com",
    traffic: [
      { revisionName: "cart-00002", percent: 90 },
      { revisionName: "cart-00001", percent: 10 },
      { revisionName: "cart-00003", percent: 0, tag: "next", url: "http://next-cart.shop.example.com" },
    ],
  },
};

const level = (name: string, more: object = {}) => ({
  name,
  type: "Limited",
  quiescing: false,
  nominal: 98,
  min: 49,
  max: 698,
  currentLimit: 120,
  seatsInUse: 0,
  executing: 0,
  waiting: 0,
  dispatched: 0,
  rejected: 0,
  timedOut: 0,
  ...more,
});

const PODS = "/api/v1/namespaces/fairway-system/pods";
const ofPod = (name: string, path: string): string => `${PODS}/${name}:9090/proxy${path}`;
const HAND = new Dealer(128, 6).deal(hashFlow("gold", "alice"));

function gateway(name: string, waiting: number): Record<string, object> {
  return {
    [ofPod(name, "/debug/flow-control")]: {
      levels: [
        level("workload-high", { waiting, seatsInUse: 5, executing: 5, dispatched: 1000, rejected: 2, timedOut: 1 }),
      ],
      dangling: [],
      broken: [],
      queues: [{ level: "workload-high", index: HAND[0], waiting, executing: 1 }],
      longestWaiting: [
        { level: "workload-high", schema: "gold", flow: "o'neil, ann", queue: HAND[0], waitedMs: waiting * 100 },
      ],
    },
    [ofPod(name, "/debug/revisions")]: {
      "shop/cart-00002": {
        places: 20,
        inFlight: 12,
        waiting: 4,
        levels: [{ level: "workload-high", waiting: 4, inUse: 12 }],
      },
      "shop/idle-00001": { places: "unlimited", inFlight: 0, waiting: 0 },
    },
  };
}

const pod = (name: string, phase = "Running") => ({ metadata: { name }, status: { phase } });
const CLUSTER: Record<string, object> = {
  "/apis/serving.knative.dev/v1/routes": { items: [ROUTE] },
  "/apis/flowcontrol.fairway.dev/v1/prioritylevelconfigurations": {
    items: items([...MANDATORY_PRIORITY_LEVELS, ...SUGGESTED_PRIORITY_LEVELS]),
  },
  "/apis/flowcontrol.fairway.dev/v1/flowschemas": {
    items: items([...MANDATORY_FLOW_SCHEMAS, ...SUGGESTED_FLOW_SCHEMAS, GOLD, LOST]),
  },
  [PODS]: { items: [pod("gw-a"), pod("gw-b"), pod("gw-c", "Pending")] },
  ...gateway("gw-a", 3),
  ...gateway("gw-b", 0),
};

const flow = (argv: readonly string[], change: Record<string, object> = {}) =>
  runFairway(["flow", ...argv], { cluster: { ...CLUSTER, ...change } });
const explained = async (...argv: string[]): Promise<FlowExplanation> => {
  const { stdout, exitCode } = await flow(["explain", ...argv, "-o", "json"]);
  expect(exitCode).toBe(0);
  return JSON.parse(stdout) as FlowExplanation;
};

describe("fairway flow explain", () => {
  it("finds schema, level, flow and queues, and why earlier schemas do not match", async () => {
    const result = await explained("cart.shop.example.com/api?x=1", "--as", "alice", "--group", "gold");
    expect(result).toMatchObject({
      target: { namespace: "shop", service: "cart", tag: "" },
      identity: { user: "alice", groups: ["gold", "system:authenticated"] },
      verb: "get",
      path: "/api",
      schema: { name: "gold", precedence: 500, distinguisher: "ByUser" },
      level: { name: "workload-high", shares: 40, shareSum: 245, response: "Queue" },
      flow: "alice",
      hand: HAND,
    });
    expect(result.missed.map(({ schema, rules }) => [schema, rules])).toEqual([
      ["exempt", [["subject"]]],
      ["probes", [["no resource rule", "path"]]],
      ["system-leader-election", [["subject"]]],
      ["system-node-high", [["subject"]]],
    ]);
    // Of the hand's queues the first has 3 requests at gw-a, so the next one would be joined there.
    expect(result.now).toEqual([
      {
        gateway: "gw-a",
        nominal: 98,
        currentLimit: 120,
        seatsInUse: 5,
        waiting: 3,
        queue: { index: HAND[1], waiting: 0 },
      },
      {
        gateway: "gw-b",
        nominal: 98,
        currentLimit: 120,
        seatsInUse: 5,
        waiting: 0,
        queue: { index: HAND[0], waiting: 0 },
      },
    ]);
    expect(result.problems).toEqual(["flow schema lost is not used: its priority level gone does not exist"]);
  });

  it("reads method, tag, headers and nobody as the gateway does", async () => {
    const shouted = await explained("http://CART.shop.example.com:8080?x=1", "--as", "alice", "--group", "gold");
    expect([shouted.schema.name, shouted.path]).toEqual(["gold", "/"]);
    const post = await explained("cart.shop/", "--as", "alice", "--group", "gold", "-X", "post");
    expect(post).toMatchObject({ verb: "create", schema: { name: "global-default" } });
    expect(post.missed.find(({ schema }) => schema === "gold")!.rules).toEqual([["verb", "no path rule"], ["subject"]]);
    const tagged = await explained("next-cart.shop.example.com", "--as", "alice", "--group", "gold");
    expect(tagged).toMatchObject({ target: { tag: "next", revisions: [{ name: "cart-00003", percent: 100 }] } });
    expect(tagged.schema.name).toBe("global-default");
    const nobody = await explained("cart.shop.svc.cluster.local/admin/x");
    expect(nobody).toMatchObject({ identity: { user: "system:anonymous", groups: ["system:unauthenticated"] } });
    const root = await explained("cart.shop/admin/x", "--as", "root");
    expect(root.schema.name).toBe("gold");
    const master = await explained("cart.shop", "--as", "boss", "--group", "system:masters");
    expect(master).toMatchObject({ level: { name: "exempt", type: "Exempt" }, hand: [], flow: "" });
  });

  it("prints it for people", async () => {
    const { stdout } = await flow(["explain", "cart.shop.example.com/api", "--as", "alice", "--group", "gold"]);
    expect(stdout).toContain("workload-high (Limited: 40 of 245 shares, waits when it is full)");
    expect(stdout).toMatch(/ 1 +exempt +no: subject\n +2 +probes +no: path; it has no resource rule/);
    expect(stdout).toMatch(/500 +gold +matches/);
    expect(stdout).toMatch(/gw-a +120 +98 +5 +3 +\d+ \(0 waiting\)/);
    expect(stdout).toContain("! flow schema lost is not used");
  });

  it("works without the gateways' limits, and says why they are missing", async () => {
    const argv = ["explain", "cart.shop", "--as", "alice"];
    const refusals: [object, string][] = [
      [{ items: [] }, "no gateway runs"],
      [apiRefusal(403, "pods is forbidden"), "pods is forbidden"],
    ];
    for (const [answer, message] of refusals) {
      const { exitCode, stdout, stderr } = await flow(argv, { [PODS]: answer });
      expect([exitCode, stderr]).toEqual([0, expect.stringContaining(`warning: no limits: `)]);
      expect(stderr).toContain(message);
      expect(stdout).toContain("global-default");
    }
  });

  it("fails when no route leads from the host, and when the objects may not be read", async () => {
    const lost = await flow(["explain", "nowhere.example.com"]);
    expect([lost.exitCode, lost.stderr]).toEqual([
      3,
      'error: no route leads from host "nowhere.example.com" to a service; hosts with a route: cart.shop.example.com, next-cart.shop.example.com\n',
    ]);
    const none = await flow(["explain", "cart.shop"], { "/apis/serving.knative.dev/v1/routes": { items: [] } });
    expect(none.stderr).toContain("there is no route at all");
    const schemas = "/apis/flowcontrol.fairway.dev/v1/flowschemas";
    expect((await flow(["explain", "cart.shop"], { [schemas]: apiRefusal(403, "no") })).exitCode).toBe(4);
    expect((await flow(["explain", "cart.shop", "-H", "nocolon"])).exitCode).toBe(2);
    expect((await flow(["explain", "cart.shop", "-X", "GET /"])).exitCode).toBe(2);
  });

  it("refuses what no gateway could get", async () => {
    const wrong: [string[], string][] = [
      [["/healthz"], '"/healthz" has no host: HOST[/PATH] is expected'],
      [["cart.shop", "--group", "gold"], "--group needs --as"],
      [["cart.shop", "--as", ""], "a user, or system:serviceaccount:NAMESPACE:NAME"],
      [["cart.shop", "--as", "system:serviceaccount:bot"], "a user, or system:serviceaccount:NAMESPACE:NAME"],
    ];
    for (const [argv, message] of wrong) {
      const { exitCode, stderr } = await flow(["explain", ...argv]);
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining(message)]);
    }
  });
});

describe("fairway flow top", () => {
  it("adds all gateways up: levels, revisions with requests, and who waits longest", async () => {
    const { exitCode, stdout } = await flow(["top", "--once"]);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^gateways +gw-a, gw-b\n/);
    expect(stdout).toMatch(/workload-high +10 +240 +196 +10 +3 +6\n/);
    expect(stdout).toMatch(/shop\/cart-00002 +24 +40 +8 +workload-high 8/);
    expect(stdout).toContain("! workload-high: 3 wait at gw-a, where it has 120 seats now");
    expect(stdout).not.toContain("idle-00001");
    expect(stdout).toMatch(/300ms +workload-high +gold +o'neil, ann +\d+ +gw-a/);
  });

  it("shows who answers, names who does not, and fails when nobody does", async () => {
    const broken = { [ofPod("gw-b", "/debug/flow-control")]: apiRefusal(503, "connection refused") };
    const one = await flow(["top", "--once"], broken);
    expect([one.exitCode, one.stdout]).toEqual([
      0,
      expect.stringContaining("! pod fairway-system/gw-b: connection refused"),
    ]);
    const off = { [ofPod("gw-a", "/debug/flow-control")]: new Refusal(404, "not found\n") };
    const none = await flow(["top"], { ...broken, ...off });
    expect([none.exitCode, none.stderr]).toEqual([5, expect.stringContaining("gw-a: its flow control is off")]);
  });

  it("gives the gateways' answers as JSON", async () => {
    const { stdout } = await flow(["top", "-o", "json"]);
    const { states } = JSON.parse(stdout) as GatewayStates;
    expect(states.map(({ gateway: name }) => name)).toEqual(["gw-a", "gw-b"]);
    expect(states[0]!.flowControl.longestWaiting).toHaveLength(1);
  });
});

describe("parts of it", () => {
  it("gives users the groups that authentication gives them", () => {
    expect(identityOf({ user: "system:serviceaccount:ns:bot", groups: [] }).groups).toEqual([
      "system:serviceaccounts",
      "system:serviceaccounts:ns",
      "system:authenticated",
    ]);
  });

  it("splits addresses, and finds no target for hosts that only look alike", () => {
    expect(splitAddress("https://a.b/c/d?e")).toEqual({ host: "a.b", path: "/c/d?e" });
    expect(splitAddress("a.b:80")).toEqual({ host: "a.b:80", path: "/" });
    expect(findTarget("cart.other", [ROUTE])).toBeUndefined();
    expect(findTarget("cart", [ROUTE])).toBeUndefined();
    const target = findTarget("cart.shop.svc.", [ROUTE])!;
    expect(target.revisions).toEqual([
      { name: "cart-00002", percent: 90 },
      { name: "cart-00001", percent: 10 },
    ]);
    const request = { method: "PURGE", path: "/", headers: [["X-Plan", "gold"]] as const, user: undefined, groups: [] };
    const attributes = attributesOf(request, target);
    expect([attributes.verb, attributes.header("x-plan"), attributes.header("x-other")]).toEqual([
      "purge",
      "gold",
      undefined,
    ]);
  });
});
