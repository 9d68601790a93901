/** The head of a request that two servers could read in two ways, or that none may read. */
export interface AmbiguousRequest {
  readonly title: string;
  /** Its lines, without the empty one at the end. */
  readonly head: readonly string[];
  /** What it is refused with. */
  readonly status: 400 | 501;
}

/** What follows such a head: nobody may take it for a request. */
export const SMUGGLED = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

const refused = (title: string, ...fields: readonly string[]): AmbiguousRequest => ({
  title,
  head: ["POST / HTTP/1.1", "Host: a", ...fields],
  status: 400,
});

export const AMBIGUOUS_REQUESTS: readonly AmbiguousRequest[] = [
  refused("both lengths", "Content-Length: 3", "Transfer-Encoding: chunked"),
  refused("both lengths, the other way", "Transfer-Encoding: chunked", "Content-Length: 3"),
  refused("two lengths", "Content-Length: 3", "Content-Length: 4"),
  refused("two equal lengths", "Content-Length: 3", "Content-Length: 3"),
  refused("a list of lengths", "Content-Length: 3, 3"),
  refused("a signed length", "Content-Length: +3"),
  refused("chunked not last", "Transfer-Encoding: chunked, gzip"),
  { ...refused("an unknown coding", "Transfer-Encoding: xchunked"), status: 501 },
  refused("space before the colon", "Transfer-Encoding : chunked"),
  refused("a folded field", "X-A: b", " Transfer-Encoding: chunked"),
  refused("a bare carriage return", "X-A: b\rContent-Length: 3"),
  refused("a NUL", "X-A: b\0c"),
  { title: "no host", head: ["POST / HTTP/1.1"], status: 400 },
];
