import type { FlowSchema, PriorityLevelConfiguration } from "../../../api/flowcontrol/v1/types.ts";
import type { FlowControl } from "../flow-control/flow-control.ts";
import type { ViewedCollection } from "./cluster-view.ts";
import { keyedHandler } from "./keyed-handler.ts";

const GROUP = "/apis/flowcontrol.fairway.dev/v1";
const nameOf = (key: string): string => key.slice(key.indexOf("/") + 1);
const keysOf = (names: Iterable<string>): string[] => [...names].map(name => `/${name}`);

/** The flow-control objects to be watched. A cluster without these kinds has the mandatory levels alone. */
export function flowControlObjects(flowControl: FlowControl): readonly ViewedCollection[] {
  return [
    {
      collection: {
        kind: "PriorityLevelConfiguration",
        path: `${GROUP}/prioritylevelconfigurations`,
        optional: true,
      },
      handler: keyedHandler<PriorityLevelConfiguration>({
        upsert: (_key, level) => flowControl.setLevel(level),
        remove: key => flowControl.removeLevel(nameOf(key)),
        keys: () => keysOf(flowControl.levelNames),
      }),
    },
    {
      collection: { kind: "FlowSchema", path: `${GROUP}/flowschemas`, optional: true },
      handler: keyedHandler<FlowSchema>({
        upsert: (_key, schema) => flowControl.setSchema(schema),
        remove: key => flowControl.removeSchema(nameOf(key)),
        keys: () => keysOf(flowControl.schemaNames),
      }),
    },
  ];
}
