/**
 * Header fields that belong to one connection and are never passed on (RFC 9110 section 7.6.1, and those that older
 * software still sends). Names in lower case.
 */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
]);

/**
 * The names that a message's `Connection` fields declare as hop-by-hop, lower-cased; undefined when there are none beyond
 * the well-known ones (the usual case).
 *
 * @param rawHeaders names and values alternately
 */
export function connectionOptions(rawHeaders: readonly string[]): ReadonlySet<string> | undefined {
  let options: Set<string> | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (name.length !== 10 || name.toLowerCase() !== "connection") continue;
    for (const part of rawHeaders[i + 1]!.split(",")) {
      const option = part.trim().toLowerCase();
      if (option !== "" && option !== "close" && !HOP_BY_HOP.has(option)) (options ??= new Set()).add(option);
    }
  }
  return options;
}

/** True for a field that ends here. `name` in lower case. */
export function isHopByHop(name: string, options: ReadonlySet<string> | undefined): boolean {
  return HOP_BY_HOP.has(name) || (options !== undefined && options.has(name));
}

/**
 * A message's fields without the hop-by-hop ones, names and order as received. `drop` (lower case) are left out too.
 * `trailer` stays: trailers themselves are passed on.
 */
export function endToEndHeaders(rawHeaders: readonly string[], drop?: ReadonlySet<string>): string[] {
  const options = connectionOptions(rawHeaders);
  const kept: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    const lower = name.toLowerCase();
    if (isHopByHop(lower, options) || drop?.has(lower) === true) continue;
    kept.push(name, rawHeaders[i + 1]!);
  }
  return kept;
}
