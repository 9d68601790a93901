import { beforeAll, describe, expect, it } from "vitest";
import { FLOW_CONTROL_API_VERSION } from "../../api/flowcontrol/v1/types.ts";
import { jsonEqual } from "../../api/meta/json.ts";
import { flowControlCases } from "../differential/flow-control-specs.ts";
import { ourVerdict, type Verdict } from "../differential/flow-control-verdict.ts";
import { KUBERNETES_GROUP, KubeVerdicts } from "../differential/kube-verdict.ts";
import { cluster } from "./support.ts";

/** Another seed than the recorded vectors of test/differential have. */
const cases = flowControlCases(20260202, 100);

describe("generated flow-control specs, good and bad, dry-run on the API server", () => {
  let theirs: Verdict[];

  const ask = async (apiVersion: string): Promise<Verdict[]> => {
    const server = KubeVerdicts.fromFile(cluster().kubeconfigPath, apiVersion);
    const verdicts: Verdict[] = [];
    for (const specCase of cases) verdicts.push(await server.verdict(specCase));
    return verdicts;
  };
  const differing = (ours: readonly Verdict[]) =>
    cases
      .map((specCase, i) => ({ specCase, ours: ours[i], theirs: theirs[i] }))
      .filter(({ ours: a, theirs: b }) => a?.accepted !== b?.accepted);

  beforeAll(async () => {
    theirs = await ask(KUBERNETES_GROUP);
  });

  it("the API server accepts some and refuses some of its own group", () => {
    const accepted = theirs.filter(verdict => verdict.accepted).length;
    expect(accepted).toBeGreaterThan(20);
    expect(accepted).toBeLessThan(cases.length - 20);
  });

  it("our rules accept the same specs", () => {
    expect(differing(cases.map(ourVerdict))).toEqual([]);
  });

  it("Fairway's group on the cluster (schema and webhooks) accepts the same specs, with the same defaults", async () => {
    const installed = await ask(FLOW_CONTROL_API_VERSION);
    expect(differing(installed)).toEqual([]);
    const accepted = installed.flatMap((verdict, i) => (verdict.accepted ? [{ verdict, specCase: cases[i]! }] : []));
    expect(accepted.filter(({ verdict, specCase }) => !jsonEqual(verdict.spec, ourVerdict(specCase).spec))).toEqual([]);
  });
});
