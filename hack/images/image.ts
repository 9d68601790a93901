/** The description of an image that `assemble` (the Go program beside this file) turns into an archive. */
export interface ImageDescription {
  /** `host/name:tag`. */
  readonly ref: string;
  /** As Go and OCI spell it: `amd64`, `arm64`. */
  readonly architecture: string;
  readonly user: string;
  readonly workingDir: string;
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
  readonly env: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly layers: readonly ImageLayer[];
}

export interface ImageLayer {
  readonly comment: string;
  readonly entries: readonly ImageEntry[];
}

/** Directories above an entry are made as needed, owned by root. */
export type ImageEntry =
  | { readonly path: string; readonly file: string; readonly mode: number }
  | { readonly path: string; readonly text: string; readonly mode: number }
  | { readonly path: string; readonly dir: true; readonly mode: number; readonly uid?: number; readonly gid?: number }
  | { readonly path: string; readonly link: string }
  /** What a Debian package has under these path prefixes (`usr/lib/...`, never `lib/...`). */
  | { readonly deb: string; readonly include: readonly string[] };

/** The user of every image of the project. */
export const NONROOT = 65_532;

/** Files that every image has: the users' names, and a /tmp that everyone may write to. */
export const COMMON_ENTRIES: readonly ImageEntry[] = [
  {
    path: "etc/passwd",
    mode: 0o644,
    text: `root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:${NONROOT}:${NONROOT}:nonroot:/home/nonroot:/sbin/nologin\n`,
  },
  { path: "etc/group", mode: 0o644, text: `root:x:0:\nnonroot:x:${NONROOT}:\n` },
  { path: "home/nonroot", dir: true, mode: 0o700, uid: NONROOT, gid: NONROOT },
  { path: "tmp", dir: true, mode: 0o1777 },
];

/** @throws Error for a machine that no image is made for */
export function ociArchitecture(nodeArchitecture: string): string {
  if (nodeArchitecture === "x64") return "amd64";
  if (nodeArchitecture === "arm64") return "arm64";
  throw new Error(`architecture ${nodeArchitecture}: images are made on x64 and arm64`);
}
