/**
 * Cloud Run's exported YAML names the service's identity by an e-mail address of Google's, which no Kubernetes service
 * account can have. It is let through with a warning, and pods run under the namespace's default account.
 */
export const isGoogleServiceAccount = (name: string): boolean => /^[^@\s]+@[^@\s]+\.gserviceaccount\.com$/.test(name);

/** The service account of a revision's pods; undefined: the namespace's default. */
export function podServiceAccountName(spec: { readonly serviceAccountName?: string | undefined }): string | undefined {
  const name = spec.serviceAccountName;
  return name === undefined || name === "" || isGoogleServiceAccount(name) ? undefined : name;
}
