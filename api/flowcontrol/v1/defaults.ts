import type { FlowSchema, PriorityLevelConfiguration } from "./types.ts";

/**
 * What admission fills in: upstream's defaults. Most are in the CRD as well; here they also replace the zeros that Go
 * clients send for absent numbers. Each function returns a new object.
 */

export function setPriorityLevelDefaults(level: PriorityLevelConfiguration): PriorityLevelConfiguration {
  const { limited, exempt, ...rest } = level.spec;
  const queuing = limited?.limitResponse.queuing;
  return {
    ...level,
    spec: {
      ...rest,
      ...(limited === undefined
        ? {}
        : {
            limited: {
              ...limited,
              nominalConcurrencyShares: limited.nominalConcurrencyShares ?? 30,
              lendablePercent: limited.lendablePercent ?? 0,
              limitResponse: {
                ...limited.limitResponse,
                ...(queuing === undefined
                  ? {}
                  : {
                      queuing: {
                        queues: queuing.queues || 64,
                        handSize: queuing.handSize || 8,
                        queueLengthLimit: queuing.queueLengthLimit || 50,
                      },
                    }),
              },
            },
          }),
      ...(exempt === undefined
        ? {}
        : {
            exempt: {
              nominalConcurrencyShares: exempt.nominalConcurrencyShares ?? 0,
              lendablePercent: exempt.lendablePercent ?? 0,
            },
          }),
    },
  };
}

export function setFlowSchemaDefaults(schema: FlowSchema): FlowSchema {
  return { ...schema, spec: { ...schema.spec, matchingPrecedence: schema.spec.matchingPrecedence || 1000 } };
}
