import { KubeConfig } from "@kubernetes/client-node";
import { CliError, reasonOf } from "../cli-error.ts";
import type { ConnectionOptions } from "./cluster-api.ts";

/** The context that the client makes up when it finds no configuration at all. */
const MADE_UP_CONTEXT = "loaded-context";

/** @throws CliError when there is no kubeconfig, it cannot be read, or it lacks the context */
export function loadKubeConfig({ kubeconfig, context }: ConnectionOptions): KubeConfig {
  const loaded = new KubeConfig();
  try {
    if (kubeconfig === undefined) loaded.loadFromDefault();
    else loaded.loadFromFile(kubeconfig);
  } catch (error) {
    throw new CliError("usage", `kubeconfig${kubeconfig === undefined ? "" : ` ${kubeconfig}`}: ${reasonOf(error)}`, {
      cause: error,
    });
  }
  if (loaded.currentContext === MADE_UP_CONTEXT && kubeconfig === undefined) {
    throw new CliError("usage", "no kubeconfig: name one with --kubeconfig or $KUBECONFIG");
  }
  if (context === undefined) return loaded;
  if (loaded.getContextObject(context) === null) {
    const names = loaded.getContexts().map(({ name }) => name);
    throw new CliError(
      "notFound",
      `no context "${context}" in the kubeconfig; there are: ${names.join(", ") || "none"}`,
    );
  }
  loaded.setCurrentContext(context);
  return loaded;
}
