import { describe, expect, it } from "vitest";
import type { GcConfig } from "../../../api/config/gc.ts";
import type { Revision } from "../../../api/serving/v1/types.ts";
import { selectGarbage } from "./select-garbage.ts";

const HOUR = 3_600_000;
const T0 = Date.parse("2026-01-01T00:00:00Z");
const at = (hours: number): string => new Date(T0 + hours * HOUR).toISOString();
const config: GcConfig = {
  retainSinceCreateTimeMs: 48 * HOUR,
  retainSinceLastActiveTimeMs: 15 * HOUR,
  minNonActiveRevisions: 0,
  maxNonActiveRevisions: 1000,
};
interface Facts {
  created?: number;
  inactiveSince?: number;
  state?: string;
  annotations?: Record<string, string>;
}
const revision = (
  n: number,
  { created = n, inactiveSince = n, state = "reserve", annotations = {} }: Facts = {},
): Revision => ({
  metadata: {
    name: `hello-${n}`,
    creationTimestamp: at(created),
    labels: {
      "serving.knative.dev/routingState": state,
      "serving.knative.dev/configurationGeneration": String(n),
    },
    annotations: { "serving.knative.dev/routingStateModified": at(inactiveSince), ...annotations },
  },
  spec: { containers: [] },
});
const select = (revisions: Revision[], overrides: Partial<GcConfig>, hours: number, latest = "hello-99") => {
  const { garbage, recheckAtMs } = selectGarbage(
    { status: { latestReadyRevisionName: latest, latestCreatedRevisionName: "hello-100" } },
    revisions,
    { ...config, ...overrides },
    T0 + hours * HOUR,
  );
  return {
    garbage: garbage.map(r => r.metadata.name),
    recheckHours: recheckAtMs === undefined ? undefined : (recheckAtMs - T0) / HOUR,
  };
};

describe("selectGarbage", () => {
  it("KS#12341, KS#13036: of seven revisions and max 3 the newest three stay, in whatever order they come", () => {
    const revisions = [4, 7, 1, 6, 2, 5, 3].map(n => revision(n));
    expect(select(revisions, { maxNonActiveRevisions: 3 }, 8).garbage).toEqual([
      "hello-1",
      "hello-2",
      "hello-3",
      "hello-4",
    ]);
  });

  it("goes by the time without traffic, not by the age", () => {
    const revisions = [revision(1, { inactiveSince: 9 }), revision(2), revision(3)];
    expect(select(revisions, { maxNonActiveRevisions: 1 }, 10).garbage).toEqual(["hello-2", "hello-3"]);
  });

  it("takes a revision when both ages have passed, and says when the next is due", () => {
    const revisions = [revision(1, { inactiveSince: 40 }), revision(5)];
    expect(select(revisions, {}, 50)).toEqual({ garbage: [], recheckHours: 53 });
    expect(select(revisions, {}, 53)).toEqual({ garbage: ["hello-5"], recheckHours: 55 });
    expect(select(revisions, {}, 55)).toEqual({ garbage: ["hello-5", "hello-1"], recheckHours: undefined });
  });

  it("keeps the newest min, however old they are", () => {
    const revisions = [1, 2, 3].map(n => revision(n));
    expect(select(revisions, { minNonActiveRevisions: 2 }, 500).garbage).toEqual(["hello-1"]);
    expect(select(revisions, { minNonActiveRevisions: 3 }, 500).garbage).toEqual([]);
  });

  it.each<[string, Revision, string?]>([
    ["routed", revision(1, { state: "active" })],
    ["not judged yet", revision(1, { state: "pending" })],
    ["the latest ready", revision(1), "hello-1"],
    ["the latest created", revision(100)],
    ["marked to stay", revision(1, { annotations: { "serving.knative.dev/no-gc": "true" } })],
    ["being deleted already", { ...revision(1), metadata: { ...revision(1).metadata, deletionTimestamp: at(2) } }],
  ])("leaves alone a revision that is %s", (_, kept, latest) => {
    expect(select([kept], { maxNonActiveRevisions: 0 }, 500, latest)).toEqual({ garbage: [], recheckHours: undefined });
  });

  it("does nothing when everything is disabled", () => {
    const disabled = {
      retainSinceCreateTimeMs: undefined,
      retainSinceLastActiveTimeMs: undefined,
      maxNonActiveRevisions: undefined,
    };
    expect(select([revision(1), revision(2)], disabled, 500)).toEqual({ garbage: [], recheckHours: undefined });
  });

  it("with ages disabled only the number counts", () => {
    const ages = { retainSinceCreateTimeMs: undefined, retainSinceLastActiveTimeMs: undefined };
    expect(select([revision(1), revision(2)], { ...ages, maxNonActiveRevisions: 1 }, 500)).toEqual({
      garbage: ["hello-1"],
      recheckHours: undefined,
    });
  });
});
