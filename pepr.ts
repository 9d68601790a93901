import "./capabilities/runtime/pepr-mode.ts"; // has to come first
import { createAutoscaling } from "./capabilities/autoscaling/index.ts";
import { runOperator } from "./capabilities/runtime/operator.ts";

const autoscaling = createAutoscaling();

runOperator([autoscaling.capability]);
