import { describe, expect, it } from "vitest";
import { planCertificates, type CertificateFactsInUse } from "./certificate-plan.ts";

const DAY_MS = 86_400_000;
const day = (days: number) => days * DAY_MS;
const inUse = (fields: Partial<CertificateFactsInUse> = {}): CertificateFactsInUse => ({
  authority: { notBeforeMs: 0, notAfterMs: day(3650) },
  serving: { notBeforeMs: 0, notAfterMs: day(90), hosts: ["a", "b"] },
  next: undefined,
  ...fields,
});

describe("certificate rotation", () => {
  it.each([
    ["nothing there", undefined, 0, { do: "create" }],
    ["fresh", inUse(), day(1), { do: "wait", atMs: day(60) }],
    ["two thirds of the serving certificate's life", inUse(), day(60), { do: "renew-serving" }],
    ["serving certificate expired", inUse(), day(100), { do: "renew-serving" }],
    ["authority expired", inUse(), day(3650), { do: "create" }],
    ["authority not valid yet: a clock was set back", inUse(), -1, { do: "create" }],
    [
      "two thirds of the authority's life",
      inUse({ serving: { notBeforeMs: day(2400), notAfterMs: day(2490), hosts: ["a", "b"] } }),
      day(2434),
      { do: "announce-authority" },
    ],
    [
      "announced just now",
      inUse({
        serving: { notBeforeMs: day(2400), notAfterMs: day(2490), hosts: ["a", "b"] },
        next: { announcedMs: day(2434) },
      }),
      day(2434) + 1000,
      { do: "wait", atMs: day(2434) + 600_000 },
    ],
    [
      "announced ten minutes ago",
      inUse({
        serving: { notBeforeMs: day(2400), notAfterMs: day(2490), hosts: ["a", "b"] },
        next: { announcedMs: day(2434) },
      }),
      day(2434) + 600_000,
      { do: "promote-authority" },
    ],
  ] as const)("%s", (_name, facts, nowMs, step) => {
    expect(planCertificates(facts, ["a"], nowMs)).toEqual(step);
  });

  it("issues again when a name is missing", () => {
    expect(planCertificates(inUse(), ["a", "c"], day(1))).toEqual({ do: "renew-serving" });
  });
});
