import "./capabilities/runtime/pepr-mode.ts"; // has to come first
import { admissionCapability } from "./capabilities/admission/index.ts";
import { createAutoscaling } from "./capabilities/autoscaling/index.ts";
import { flowControlCapability } from "./capabilities/flow-control/index.ts";
import { runOperator } from "./capabilities/runtime/operator.ts";
import { createServices } from "./capabilities/services/index.ts";

const autoscaling = createAutoscaling();
const services = createServices(autoscaling);

runOperator([admissionCapability, services, autoscaling.capability, flowControlCapability]);
