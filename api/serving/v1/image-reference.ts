/** The grammar of image references as registries and Knative read it: `[host[:port]/]path[:tag][@sha256:digest]`. */

const PATH = /^[a-z0-9_\-./]{2,255}$/;
const TAG = /^[A-Za-z0-9_\-.]{1,128}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const HOST = /^(?:[A-Za-z0-9\-._~%]+|\[[0-9a-fA-F:.]+\])(?::\d*)?$/;

export function isImageReference(reference: string): boolean {
  const [base, digest, ...more] = reference.split("@");
  if (more.length > 0 || (digest !== undefined && !DIGEST.test(digest))) return false;
  const colon = base!.lastIndexOf(":");
  const hasTag = colon >= 0 && !base!.slice(colon).includes("/");
  if (hasTag && !TAG.test(base!.slice(colon + 1))) return false;
  const name = hasTag ? base!.slice(0, colon) : base!;
  const slash = name.indexOf("/");
  const first = slash < 0 ? "" : name.slice(0, slash);
  const hasHost = first.includes(".") || first.includes(":") || first === "localhost";
  return hasHost ? HOST.test(first) && PATH.test(name.slice(slash + 1)) : PATH.test(name);
}
