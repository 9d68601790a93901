import { z } from "zod";
import { parseDurationMs, parseInteger } from "../meta/go-format.ts";
import { checked, integer, parseConfigMap } from "./config-map.ts";
import type { ConfigData } from "./config-map.ts";

/** ConfigMap config-gc: when Revisions without traffic are removed. */
export const GC_CONFIG_NAME = "config-gc";

const DISABLED = "disabled";
const isDisabled = (text: string) => text.toLowerCase() === DISABLED;

function age(defaults: string, description: string) {
  return checked<number | undefined>(defaults, description, "duration 0s or more, or `disabled`", text => {
    if (isDisabled(text)) return { ok: undefined };
    const ms = parseDurationMs(text);
    return ms === undefined || ms < 0 ? { expected: "must be a duration of 0s or more, or disabled" } : { ok: ms };
  });
}

export const gcShape = {
  "retain-since-create-time": age("48h", "A Revision younger than this is kept. `disabled`: age does not keep it."),
  "retain-since-last-active-time": age(
    "15h",
    "A Revision that had traffic within this time is kept. `disabled`: it does not keep it.",
  ),
  "min-non-active-revisions": integer("20", "So many inactive Revisions, the newest, are always kept.", { min: 0 }),
  "max-non-active-revisions": checked<number | undefined>(
    "1000",
    "Above so many inactive Revisions the oldest go, whatever their age.",
    "integer 0 or more, or `disabled`",
    text => {
      if (isDisabled(text)) return { ok: undefined };
      const count = parseInteger(text, 0, Number.MAX_SAFE_INTEGER);
      return typeof count === "number" ? { ok: count } : { expected: "must be an integer of 0 or more, or disabled" };
    },
  ),
};

const GcConfigSchema = z
  .object(gcShape)
  .superRefine((c, context) => {
    const max = c["max-non-active-revisions"];
    if (max !== undefined && c["min-non-active-revisions"] > max) {
      context.addIssue({
        code: "custom",
        path: ["min-non-active-revisions"],
        message: `must be at most max-non-active-revisions(${max}), was ${c["min-non-active-revisions"]}`,
      });
    }
  })
  .transform(c => ({
    /** undefined: age does not keep a Revision. */
    retainSinceCreateTimeMs: c["retain-since-create-time"],
    retainSinceLastActiveTimeMs: c["retain-since-last-active-time"],
    minNonActiveRevisions: c["min-non-active-revisions"],
    /** undefined: no limit. */
    maxNonActiveRevisions: c["max-non-active-revisions"],
  }));

export type GcConfig = Readonly<z.infer<typeof GcConfigSchema>>;

export function parseGcConfig(data?: ConfigData): GcConfig {
  return parseConfigMap(GC_CONFIG_NAME, GcConfigSchema, data);
}
