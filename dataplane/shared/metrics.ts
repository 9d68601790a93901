import { collectDefaultMetrics, Registry } from "prom-client";

export interface RegistryOptions {
  /** Labels of every series of the process. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Memory, CPU, event loop and garbage collection of the process. */
  readonly processMetrics: boolean;
}

export function createRegistry(options: RegistryOptions): Registry {
  const registry = new Registry();
  if (options.labels !== undefined) registry.setDefaultLabels(options.labels);
  if (options.processMetrics) collectDefaultMetrics({ register: registry });
  return registry;
}
