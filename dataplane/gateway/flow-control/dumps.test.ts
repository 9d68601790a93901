import { describe, expect, it } from "vitest";
import { MANDATORY_PRIORITY_LEVELS } from "../../../core/flowcontrol/bootstrap.ts";
import { FlowController, type FlowTicket } from "../../../core/flowcontrol/flow-controller.ts";
import type { FlowSchemaSpec, PriorityLevelSpec } from "../../../core/flowcontrol/objects.ts";
import { DUMP_PATHS, dumpPages } from "./dumps.ts";
import { formatTable } from "./dump-table.ts";
import { serviceRequestAttributes } from "../../../core/flowcontrol/service-request.ts";

const EPOCH_MS = Date.UTC(2026, 0, 2, 3, 4, 5);

const tenants: PriorityLevelSpec = {
  type: "Limited",
  limited: {
    nominalConcurrencyShares: 15,
    lendablePercent: 0,
    borrowingLimitPercent: 0,
    limitResponse: { type: "Queue", queuing: { queues: 2, handSize: 1, queueLengthLimit: 1 } },
  },
};
const schemaTo = (level: string, user: string): FlowSchemaSpec => ({
  priorityLevelConfiguration: { name: level },
  matchingPrecedence: 100,
  distinguisherMethod: { type: "ByUser" },
  rules: [
    {
      subjects: [{ kind: "User", user: { name: user } }],
      resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"] }],
    },
  ],
});

/** Three seats of four are the tenants': one request of two seats runs, one waits, one was refused; somebody exempt runs. */
function scene() {
  const hooks = { dispatched: () => undefined, expired: () => undefined };
  const controller = new FlowController<string>({ totalSeats: 4, maxWaitMs: 15_000, hooks }, 0);
  controller.configure(
    [...MANDATORY_PRIORITY_LEVELS, { name: "tenants", spec: tenants }].map(level => ({ ...level, uid: "" })),
    [
      { name: "mouse", uid: "", spec: schemaTo("tenants", "mouse") },
      { name: "staff", uid: "", spec: schemaTo("exempt", "Doe, J.") },
    ],
    0,
  );
  const start = (user: string, nowMs: number, tag = ""): FlowTicket<string> | undefined => {
    const identity = { user, groups: ["system:authenticated"] };
    const request = { method: "POST", target: "/cart?id=1", header: () => undefined };
    const attributes = serviceRequestAttributes(request, { namespace: "shop", service: "cart", tag }, identity);
    const result = controller.start({ classification: controller.classify(attributes), seats: 2, payload: "" }, nowMs);
    return result.kind === "rejected" ? undefined : result.ticket;
  };
  return { controller, start };
}

const pageOf = (dumped: FlowController<string>, path: string, query = ""): string[] =>
  dumpPages(dumped, () => EPOCH_MS)[path]!(new URLSearchParams(query)).split("\n");

describe("the dumps", () => {
  const { controller, start } = scene();
  for (const [user, nowMs, tag] of [
    ["mouse", 0.5, ""],
    ["mouse", 1.25, ""],
    ["mouse", 1.5, ""],
    ["mouse", 1.75, ""],
    ["mouse", 1.75, ""],
    ["Doe, J.", 2, "next"],
  ] as const)
    start(user, nowMs, tag);

  it("of levels", () => {
    expect(pageOf(controller, DUMP_PATHS.levels)).toEqual([
      "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, DispatchedRequests, RejectedRequests, TimedoutRequests, CancelledRequests",
      "catch-all,         0,            true,   false,       0,               0,                 0,                  0,                0,                0",
      "exempt,            0,            false,  false,       0,               1,                 1,                  0,                0,                0",
      "tenants,           1,            false,  false,       1,               3,                 3,                  1,                0,                0",
    ]);
  });

  it("of queues", () => {
    expect(pageOf(controller, DUMP_PATHS.queues)).toEqual([
      "PriorityLevelName, Index,  PendingRequests, ExecutingRequests, SeatsInUse, NextDispatchR, InitialSeatsSum, MaxSeatsSum, TotalWorkSum",
      "tenants,           0,      1,               3,                 3,          0.00900000ss,  1,               1,           0.00300000ss",
      "tenants,           1,      0,               0,                 0,          0.00000000ss,  0,               0,           0.00000000ss",
    ]);
  });

  it("of requests", () => {
    const plain = [
      "PriorityLevelName, FlowSchemaName, QueueIndex, RequestIndexInQueue, FlowDistingsher, ArriveTime,                 InitialSeats, FinalSeats, AdditionalLatency, StartTime",
      "exempt,            staff,          -1,         -1,                  ,                2026-01-02T03:04:05.002Z,   2,            0,          0s,                2026-01-02T03:04:05.002Z",
      "tenants,           mouse,          0,          0,                   mouse,           2026-01-02T03:04:05.00175Z, 1,            0,          0s,                0001-01-01T00:00:00Z",
      "tenants,           mouse,          0,          -1,                  mouse,           2026-01-02T03:04:05.0005Z,  1,            0,          0s,                2026-01-02T03:04:05.0005Z",
      "tenants,           mouse,          0,          -1,                  mouse,           2026-01-02T03:04:05.00125Z, 1,            0,          0s,                2026-01-02T03:04:05.00125Z",
      "tenants,           mouse,          0,          -1,                  mouse,           2026-01-02T03:04:05.0015Z,  1,            0,          0s,                2026-01-02T03:04:05.0015Z",
    ];
    expect(pageOf(controller, DUMP_PATHS.requests)).toEqual(plain);
    expect(pageOf(controller, DUMP_PATHS.requests, "includeRequestDetails=")).toEqual(plain);
  });

  it("of requests with who sends them and what for", () => {
    const page = pageOf(controller, DUMP_PATHS.requests, "includeRequestDetails=1");
    const begin = page[0]?.indexOf("StartTime");
    expect(page.map(line => line.slice(begin))).toEqual([
      "StartTime,                  UserName,  Verb,   APIPath, Namespace, Name,   APIVersion,             Resource, SubResource",
      '2026-01-02T03:04:05.002Z,   "Doe, J.", create, /cart,   shop,      cart,   serving.knative.dev/v1, services, next',
      "0001-01-01T00:00:00Z,       mouse,     create, /cart,   shop,      cart,   serving.knative.dev/v1, services, ",
      "2026-01-02T03:04:05.0005Z,  mouse,     create, /cart,   shop,      cart,   serving.knative.dev/v1, services, ",
      "2026-01-02T03:04:05.00125Z, mouse,     create, /cart,   shop,      cart,   serving.knative.dev/v1, services, ",
      "2026-01-02T03:04:05.0015Z,  mouse,     create, /cart,   shop,      cart,   serving.knative.dev/v1, services, ",
    ]);
  });
});

describe("a table", () => {
  it("has columns of 8 or more, by code points, and no cell that breaks it", () => {
    expect(
      formatTable(
        ["A", "Bbbbbbbbbb", "C"],
        [
          ["é", 'a "b", c', ""],
          ["a\tb", 1, true],
        ],
      ).split("\n"),
    ).toEqual(["A,      Bbbbbbbbbb,   C", 'é,      "a \\"b\\", c", ', '"a\\tb", 1,            true']);
  });
});
