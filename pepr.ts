import "./capabilities/runtime/pepr-mode.ts"; // has to come first
import { createAutoscaling } from "./capabilities/autoscaling/index.ts";
import { runOperator } from "./capabilities/runtime/operator.ts";
import { createServices } from "./capabilities/services/index.ts";

const autoscaling = createAutoscaling();
const services = createServices(autoscaling);

runOperator([services, autoscaling.capability]);
