import { Capability } from "pepr";
import { setFlowSchemaDefaults, setPriorityLevelDefaults } from "../../api/flowcontrol/v1/defaults.ts";
import {
  FlowSchemaSchema,
  PriorityLevelConfigurationSchema,
  type FlowSchema,
  type PriorityLevelConfiguration,
} from "../../api/flowcontrol/v1/types.ts";
import { validateFlowSchema, validatePriorityLevel } from "../../api/flowcontrol/v1/validate.ts";
import { asWarning, generic } from "../../api/meta/field-error.ts";
import {
  setConfigurationDefaults,
  setRevisionDefaults,
  setRouteDefaults,
  setServiceDefaults,
} from "../../api/serving/v1/defaults.ts";
import { ConfigurationSchema, RevisionSchema, RouteSchema, ServiceSchema } from "../../api/serving/v1/types.ts";
import {
  validateConfiguration,
  validateRevision,
  validateRoute,
  validateService,
} from "../../api/serving/v1/validate.ts";
import { setDomainMappingDefaults, validateDomainMapping } from "../../api/serving/v1beta1/domain-mapping.ts";
import { DomainMappingSchema, type DomainMapping } from "../../api/serving/v1beta1/types.ts";
import { MANDATORY_FLOW_SCHEMAS, MANDATORY_PRIORITY_LEVELS } from "../../core/flowcontrol/bootstrap.ts";
import type { CapabilityModule } from "../runtime/capability.ts";
import {
  configMaps,
  configurations,
  domainMappings,
  flowSchemas,
  priorityLevels,
  revisions,
  routes,
  services,
} from "../runtime/kinds.ts";
import { defaulting, validating } from "./actions.ts";
import { followAdmissionSettings, validateConfigMap } from "./config-maps.ts";
import { flowControlRules, servingDefaults, servingRules } from "./rules.ts";

/** The mandatory flow-control objects, whose specs are refused any change. */
const fixedLevels = new Map(MANDATORY_PRIORITY_LEVELS.map(({ name, spec }) => [name, spec]));
const fixedSchemas = new Map(MANDATORY_FLOW_SCHEMAS.map(({ name, spec }) => [name, spec]));

/** Who writes one must not wait for it. */
const NOT_SERVED = asWarning(generic("DomainMappings are checked and kept, and not served yet", ["spec.ref"]));

/** Defaults and validation of every kind that users write; on all replicas. The webhooks: manifests/base/operator-webhooks.yaml. */
export const admissionCapability: CapabilityModule = runtime => {
  const capability = new Capability({
    name: "admission",
    description: "Fills in defaults and refuses what cannot work, with the field named",
  });
  const { When } = capability;
  const { clusterDomain, systemNamespace } = runtime.config;
  const config = followAdmissionSettings(runtime);

  When(services.model, services)
    .IsCreatedOrUpdated()
    .Mutate(defaulting(ServiceSchema, servingDefaults(setServiceDefaults, config)))
    .Validate(validating(ServiceSchema, servingRules(validateService, config)));
  When(configurations.model, configurations)
    .IsCreatedOrUpdated()
    .Mutate(defaulting(ConfigurationSchema, servingDefaults(setConfigurationDefaults, config)))
    .Validate(validating(ConfigurationSchema, servingRules(validateConfiguration, config)));
  When(revisions.model, revisions)
    .IsCreatedOrUpdated()
    .Mutate(defaulting(RevisionSchema, servingDefaults(setRevisionDefaults, config)))
    .Validate(validating(RevisionSchema, servingRules(validateRevision, config)));
  When(routes.model, routes)
    .IsCreatedOrUpdated()
    .Mutate(defaulting(RouteSchema, servingDefaults(setRouteDefaults, config)))
    .Validate(validating(RouteSchema, servingRules(validateRoute, config)));
  When(domainMappings.model, domainMappings)
    .IsCreatedOrUpdated()
    .Mutate(defaulting(DomainMappingSchema, servingDefaults(setDomainMappingDefaults, config)))
    .Validate(
      validating(
        DomainMappingSchema,
        servingRules<DomainMapping>(
          (mapping, context) => [...validateDomainMapping(mapping, context, clusterDomain), NOT_SERVED],
          config,
        ),
      ),
    );

  When(priorityLevels.model, priorityLevels)
    .IsCreatedOrUpdated()
    .Mutate(defaulting(PriorityLevelConfigurationSchema, setPriorityLevelDefaults))
    .Validate(
      validating(
        PriorityLevelConfigurationSchema,
        flowControlRules<PriorityLevelConfiguration>("PriorityLevelConfiguration.flowcontrol.fairway.dev", level =>
          validatePriorityLevel(level, fixedLevels),
        ),
      ),
    );
  When(flowSchemas.model, flowSchemas)
    .IsCreatedOrUpdated()
    .Mutate(defaulting(FlowSchemaSchema, setFlowSchemaDefaults))
    .Validate(
      validating(
        FlowSchemaSchema,
        flowControlRules<FlowSchema>("FlowSchema.flowcontrol.fairway.dev", schema =>
          validateFlowSchema(schema, fixedSchemas),
        ),
      ),
    );

  When(configMaps.model, configMaps)
    .IsCreatedOrUpdated()
    .InNamespace(systemNamespace)
    .Validate(validateConfigMap(clusterDomain));

  return capability;
};
