import process from "node:process";
import type { Gateway } from "./gateway.ts";

// The first process of a container is not ended by a signal it has no handler for, and a signal comes once. So the
// handlers come before anything that takes time to load.
const running: { gateway?: Gateway } = {};
const stop = (): void => {
  // One that has not come so far as to serve has nothing to drain.
  if (running.gateway === undefined) process.exit(0);
  void running.gateway.stop();
};
process.on("SIGTERM", stop);
process.on("SIGINT", stop);

const { runGateway } = await import("./run.ts");
running.gateway = await runGateway();
await running.gateway.stopped;
process.exit(0);
