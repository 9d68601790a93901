/** A host as it is looked up: lower case, without port and trailing dot. */
export function normalizeHost(authority: string): string {
  let host = authority;
  if (host.startsWith("[")) host = host.slice(0, host.indexOf("]") + 1);
  else {
    const colon = host.lastIndexOf(":");
    if (colon >= 0) host = host.slice(0, colon);
  }
  if (host.endsWith(".")) host = host.slice(0, -1);
  return host.toLowerCase();
}

/** The names by which a Service is reached inside the cluster. A bare `name` is not one: it depends on who asks. */
export function clusterHosts(service: string, namespace: string, clusterDomain: string): string[] {
  return [`${service}.${namespace}`, `${service}.${namespace}.svc`, `${service}.${namespace}.svc.${clusterDomain}`];
}

/** `name.namespace[.svc[.<domain>]]` taken apart, or undefined for any other host. */
export function parseClusterHost(
  host: string,
  clusterDomain: string,
): { readonly service: string; readonly namespace: string } | undefined {
  const [service, namespace, svc, ...rest] = host.split(".");
  if (service === undefined || namespace === undefined || service === "" || namespace === "") return undefined;
  const domain = rest.join(".");
  const local = svc === undefined || (svc === "svc" && (domain === "" || domain === clusterDomain));
  return local ? { service, namespace } : undefined;
}

/** True for hosts that only exist inside the cluster. */
export function isClusterHost(host: string, clusterDomain: string): boolean {
  return host.endsWith(".svc") || host.endsWith(`.svc.${clusterDomain}`);
}

/** The host of a URL of a Route's status, or undefined when it has none. */
export function hostOfUrl(url: string | undefined): string | undefined {
  if (url === undefined || url === "") return undefined;
  try {
    return normalizeHost(new URL(url).host);
  } catch {
    return undefined;
  }
}
