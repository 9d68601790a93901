/**
 * The addresses of the local clusters. Each has an index of its own, and from it its ranges, so that several live side
 * by side: a link of two addresses between host and node, the pods' range and the services' range.
 */
export interface AddressPlan {
  readonly index: number;
  /** Name of the host's end of the link. */
  readonly hostLink: string;
  readonly hostIp: string;
  readonly nodeIp: string;
  readonly linkPrefixLength: number;
  readonly podRange: string;
  readonly serviceRange: string;
  /** ClusterIP of the Service `kubernetes`: the first of the service range. */
  readonly apiServiceIp: string;
  /** ClusterIP of the Service `kube-dns`: the tenth of the service range, as is the custom. */
  readonly dnsServiceIp: string;
}

/** How many clusters the address plan has room for. */
export const MAX_CLUSTERS = 64;

const LINKS_BASE = "10.90.0.0";
const LINK_PREFIX_LENGTH = 30;
const PODS_BASE = "10.91.0.0";
const POD_PREFIX_LENGTH = 24;
const SERVICES_BASE = "10.92.0.0";
const SERVICE_PREFIX_LENGTH = 20;

export class AddressesExhaustedError extends Error {
  readonly code = "ADDRESSES_EXHAUSTED";
}

export function addressPlan(index: number): AddressPlan {
  if (!Number.isInteger(index) || index < 0 || index >= MAX_CLUSTERS) {
    throw new RangeError(`cluster index ${index}: must be a whole number from 0 to ${MAX_CLUSTERS - 1}`);
  }
  const link = nthRange(LINKS_BASE, LINK_PREFIX_LENGTH, index);
  const pods = nthRange(PODS_BASE, POD_PREFIX_LENGTH, index);
  const services = nthRange(SERVICES_BASE, SERVICE_PREFIX_LENGTH, index);
  return {
    index,
    hostLink: `fairway${index}`,
    hostIp: toAddress(link + 1),
    nodeIp: toAddress(link + 2),
    linkPrefixLength: LINK_PREFIX_LENGTH,
    podRange: `${toAddress(pods)}/${POD_PREFIX_LENGTH}`,
    serviceRange: `${toAddress(services)}/${SERVICE_PREFIX_LENGTH}`,
    apiServiceIp: toAddress(services + 1),
    dnsServiceIp: toAddress(services + 10),
  };
}

/**
 * The lowest index that no other cluster has and whose ranges overlap none of `hostRanges` (CIDR, e.g. `10.0.0.0/8`).
 * @throws AddressesExhaustedError when there is none
 */
export function freeAddressPlan(usedIndexes: ReadonlySet<number>, hostRanges: readonly string[]): AddressPlan {
  for (let index = 0; index < MAX_CLUSTERS; index++) {
    if (usedIndexes.has(index)) continue;
    const plan = addressPlan(index);
    const own = [`${plan.nodeIp}/${plan.linkPrefixLength}`, plan.podRange, plan.serviceRange];
    if (!hostRanges.some(range => own.some(mine => rangesOverlap(mine, range)))) return plan;
  }
  throw new AddressesExhaustedError(
    `no free addresses for a cluster: ${usedIndexes.size} of ${MAX_CLUSTERS} indexes are in use, and the others ` +
      `overlap networks of this host (${hostRanges.join(", ")})`,
  );
}

/** Whether two IPv4 ranges in CIDR form share an address. */
export function rangesOverlap(left: string, right: string): boolean {
  const a = parseRange(left);
  const b = parseRange(right);
  return a.first <= b.last && b.first <= a.last;
}

/**
 * IPv4 destinations of a routing table in the form of /proc/net/route (columns Destination and Mask, hexadecimal and
 * little-endian), without the default route and without routes by a link in `exceptLinks`.
 */
export function routedRanges(routeTable: string, exceptLinks: ReadonlySet<string>): string[] {
  const ranges: string[] = [];
  for (const line of routeTable.split("\n").slice(1)) {
    const [link, destination, , , , , , mask] = line.trim().split(/\s+/);
    if (link === undefined || destination === undefined || mask === undefined || exceptLinks.has(link)) continue;
    const prefixLength = swapBytes(mask).toString(2).replace(/[^1]/g, "").length;
    if (prefixLength > 0) ranges.push(`${toAddress(swapBytes(destination))}/${prefixLength}`);
  }
  return ranges;
}

function nthRange(base: string, prefixLength: number, index: number): number {
  return fromAddress(base) + index * 2 ** (32 - prefixLength);
}

function parseRange(range: string): { first: number; last: number } {
  const [address, prefix] = range.split("/");
  const size = 2 ** (32 - Number(prefix));
  const first = Math.floor(fromAddress(address ?? "") / size) * size;
  return { first, last: first + size - 1 };
}

function swapBytes(hexadecimal: string): number {
  return Buffer.from(hexadecimal, "hex").readUInt32LE(0);
}

function fromAddress(address: string): number {
  const parts = address.split(".").map(Number);
  if (parts.length !== 4 || parts.some(part => !Number.isInteger(part) || part < 0 || part > 255)) {
    throw new RangeError(`not an IPv4 address: "${address}"`);
  }
  return parts.reduce((sum, part) => sum * 256 + part, 0);
}

function toAddress(value: number): string {
  return [24, 16, 8, 0].map(shift => Math.floor(value / 2 ** shift) % 256).join(".");
}
