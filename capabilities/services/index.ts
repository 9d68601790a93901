import { Capability } from "pepr";
import type { CapabilityModule } from "../runtime/capability.ts";
import { configurations, revisions, routes, services } from "../runtime/kinds.ts";
import { buildServices, type ServicesCollaborators } from "./controllers.ts";

/** Runs `serving.knative.dev` Services, Configurations, Revisions and Routes. */
export const createServices =
  (collaborators: ServicesCollaborators): CapabilityModule =>
  runtime => {
    const capability = new Capability({
      name: "services",
      description: "Makes Configurations, Routes, Revisions and their pods of Knative Services",
    });
    const { When } = capability;
    const controllers = buildServices(runtime, collaborators);
    When(services.model, services).IsCreatedOrUpdated().Watch(controllers.service.hint);
    When(configurations.model, configurations).IsCreatedOrUpdated().Watch(controllers.configuration.hint);
    When(revisions.model, revisions).IsCreatedOrUpdated().Watch(controllers.revision.hint);
    When(routes.model, routes).IsCreatedOrUpdated().Watch(controllers.route.hint);
    return capability;
  };
