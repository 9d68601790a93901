import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { FlowSchemaSchema, PriorityLevelConfigurationSchema } from "../api/flowcontrol/v1/types.ts";
import {
  MANDATORY_FLOW_SCHEMAS,
  MANDATORY_PRIORITY_LEVELS,
  SUGGESTED_FLOW_SCHEMAS,
  SUGGESTED_PRIORITY_LEVELS,
} from "../core/flowcontrol/bootstrap.ts";
import { FlowController } from "../core/flowcontrol/flow-controller.ts";
import { serviceRequestAttributes } from "../core/flowcontrol/service-request.ts";
import { identityOf } from "../cli/flow/request.ts";

interface Named<S> {
  readonly name: string;
  readonly uid: string;
  readonly spec: S;
}

/** Objects by name, a later one in place of an earlier. */
function latest<S>(objects: readonly { readonly name: string; readonly spec: S }[]): Named<S>[] {
  return [...new Map(objects.map(({ name, spec }) => [name, { name, uid: "", spec }])).values()];
}

/** A gateway of 600 seats at rest, with the default objects and an example's. */
function gatewayWith(example?: string): FlowController<never> {
  const file = join(import.meta.dirname, "..", "manifests", "examples", `${example}.yaml`);
  const objects =
    example === undefined
      ? []
      : parseAllDocuments(readFileSync(file, "utf8")).map(document => document.toJS() as { kind: string });
  const of = (kind: string) => objects.filter(object => object.kind === kind);
  const levels = of("PriorityLevelConfiguration").map(object => PriorityLevelConfigurationSchema.parse(object));
  const schemas = of("FlowSchema").map(object => FlowSchemaSchema.parse(object));
  const named = <S>({ metadata, spec }: { metadata: { name?: string | undefined }; spec: S }) => ({
    name: metadata.name ?? "",
    spec,
  });
  const hooks = { dispatched: () => undefined, expired: () => undefined };
  const controller = new FlowController<never>({ totalSeats: 600, maxWaitMs: 15_000, hooks }, 0);
  const report = controller.configure(
    latest([...MANDATORY_PRIORITY_LEVELS, ...SUGGESTED_PRIORITY_LEVELS, ...levels.map(named)]),
    latest([...MANDATORY_FLOW_SCHEMAS, ...SUGGESTED_FLOW_SCHEMAS, ...schemas.map(named)]),
    0,
  );
  expect(report).toEqual({ dangling: [], broken: [] });
  controller.tick(controller.nextEventMs());
  return controller;
}

interface Asked {
  readonly user?: string;
  readonly groups?: readonly string[];
  readonly service?: string;
  readonly namespace?: string;
  readonly path?: string;
}

function levelOf(controller: FlowController<never>, asked: Asked): string {
  const { user, groups = [], service = "shop", namespace = "default", path = "/" } = asked;
  const request = { method: "GET", target: path, header: () => undefined };
  const identity = identityOf({ user, groups });
  return controller.classify(serviceRequestAttributes(request, { namespace, service, tag: "" }, identity)).level.name;
}

const seats = (controller: FlowController<never>, name: string): number =>
  controller.status().find(({ level }) => level.name === name)?.currentLimit ?? NaN;
const job = (namespace: string) => ({
  user: `system:serviceaccount:${namespace}:nightly`,
  groups: ["system:serviceaccounts"],
});

describe("the examples do what they say", () => {
  it("paid-before-free", () => {
    const gateway = gatewayWith("paid-before-free");
    expect(levelOf(gateway, { user: "alice", groups: ["paid-tenants"] })).toBe("paid");
    expect(levelOf(gateway, { user: "bob" })).toBe("free");
    expect(levelOf(gateway, {})).toBe("free");
    expect(levelOf(gateway, { user: "alice", groups: ["paid-tenants"], service: "blog" })).toBe("global-default");
  });

  it("batch-behind-people", () => {
    const gateway = gatewayWith("batch-behind-people");
    expect(levelOf(gateway, job("batch"))).toBe("batch");
    expect(levelOf(gateway, job("web"))).toBe("workload-low");
    expect(levelOf(gateway, { user: "alice" })).toBe("people");
    expect(levelOf(gateway, {})).toBe("people");
  });

  it("health-checks-exempt", () => {
    const gateway = gatewayWith("health-checks-exempt");
    expect(levelOf(gateway, { ...job("monitoring"), path: "/health" })).toBe("exempt");
    expect(levelOf(gateway, { ...job("monitoring"), path: "/orders" })).toBe("workload-low");
    expect(levelOf(gateway, { path: "/health" })).toBe("global-default");
    expect(levelOf(gateway, { path: "/healthz" })).toBe("exempt");
  });

  it("seats-for-services", () => {
    expect(seats(gatewayWith(), "global-default")).toBe(56);
    const gateway = gatewayWith("seats-for-services");
    expect(seats(gateway, "global-default")).toBe(219);
    expect(["system", "node-high", "leader-election"].map(name => seats(gateway, name))).toEqual([0, 0, 0]);
  });
});
