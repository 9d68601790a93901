import type { Clock, Timer } from "../../shared/clock.ts";
import type { Exchange } from "../../shared/http/exchange.ts";
import type { Upstream } from "../../shared/http/upstream.ts";
import type { Endpoint } from "../revisions/pod.ts";
import type { RevisionSettings } from "../revisions/revision-settings.ts";
import { parsePassed, PASSED_FIELD, type PassedRequest } from "./passed-request.ts";

/** The gateways that share the places of revisions. */
export interface GatewaySet {
  /** Names of those that take requests, in order. */
  readonly names: readonly string[];
  /** This one; it may be on its way in or out and not be among them. */
  readonly self: string;
}

/** Another gateway: its listener for requests from inside the cluster. */
export interface Peer {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  upstream(protocol: RevisionSettings["protocol"]): Upstream;
}

export interface PeersOptions {
  /** This gateway's name, as in its endpoint. */
  readonly self: string;
  readonly clock: Clock;
  readonly connect: (address: string, protocol: RevisionSettings["protocol"]) => Upstream;
  /** Hears that the set has changed. */
  readonly onChange: () => void;
}

/** How long a gateway that took no connection is left out: by then its endpoint tells, or it is back. */
const SET_ASIDE_MS = 5_000;

/** The other gateways, by the endpoints of their Service. */
export class Peers {
  readonly #options: PeersOptions;
  #endpoints: readonly Endpoint[] = [];
  /** Peers by address: connections stay while the set changes around them. */
  readonly #peers = new Map<string, OtherGateway>();
  readonly #setAside = new Map<string, Timer>();
  #set: GatewaySet;
  #byName = new Map<string, OtherGateway>();
  #addresses: ReadonlySet<string> = new Set();

  constructor(options: PeersOptions) {
    this.#options = options;
    this.#set = { names: [options.self], self: options.self };
  }

  get set(): GatewaySet {
    return this.#set;
  }

  find(name: string): Peer | undefined {
    return this.#byName.get(name);
  }

  setEndpoints(endpoints: readonly Endpoint[]): void {
    this.#endpoints = endpoints;
    this.#update();
  }

  /** It took no connection: until its endpoint tells more, the others do without it. */
  refusedBy(peer: Peer): void {
    const { clock } = this.#options;
    const before = this.#setAside.get(peer.name);
    if (before !== undefined) clock.cancel(before);
    const timer = clock.after(SET_ASIDE_MS, () => {
      this.#setAside.delete(peer.name);
      this.#update();
    });
    this.#setAside.set(peer.name, timer);
    this.#update();
  }

  /** What another gateway says of a request that it has passed on; undefined for every other request. */
  passedBy(exchange: Pick<Exchange, "header" | "remoteAddress">): PassedRequest | undefined {
    const field = exchange.header(PASSED_FIELD);
    if (field === undefined || !this.#addresses.has(exchange.remoteAddress)) return undefined;
    return parsePassed(field);
  }

  close(): void {
    for (const timer of this.#setAside.values()) this.#options.clock.cancel(timer);
    for (const peer of this.#peers.values()) peer.close();
  }

  #update(): void {
    const { self, connect, onChange } = this.#options;
    const ready = this.#endpoints.filter(({ ready, podName }) => ready && !this.#setAside.has(podName));
    const names = ready.map(({ podName }) => podName).sort();
    const before = this.#set.names;
    this.#set = { names: names.length === 0 ? [self] : names, self };

    const byName = new Map<string, OtherGateway>();
    for (const { podName, address } of this.#endpoints) {
      if (podName === self) continue;
      let peer = this.#peers.get(address);
      if (peer?.name !== podName) {
        peer?.close();
        peer = new OtherGateway(podName, address, connect);
        this.#peers.set(address, peer);
      }
      byName.set(podName, peer);
    }
    for (const [address, peer] of this.#peers) {
      if (byName.get(peer.name) === peer) continue;
      peer.close();
      this.#peers.delete(address);
    }
    this.#byName = byName;
    // One on its way out still has requests to pass on.
    this.#addresses = new Set([...byName.values()].map(({ host }) => host));
    if (before.join() !== this.#set.names.join()) onChange();
  }
}

class OtherGateway implements Peer {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly #address: string;
  readonly #connect: PeersOptions["connect"];
  readonly #upstreams = new Map<RevisionSettings["protocol"], Upstream>();

  constructor(name: string, address: string, connect: PeersOptions["connect"]) {
    const colon = address.lastIndexOf(":");
    this.name = name;
    this.host = address.slice(0, colon).replace(/^\[(.*)\]$/, "$1");
    this.port = Number(address.slice(colon + 1));
    this.#address = address;
    this.#connect = connect;
  }

  upstream(protocol: RevisionSettings["protocol"]): Upstream {
    let upstream = this.#upstreams.get(protocol);
    if (upstream === undefined) {
      upstream = this.#connect(this.#address, protocol);
      this.#upstreams.set(protocol, upstream);
    }
    return upstream;
  }

  close(): void {
    for (const upstream of this.#upstreams.values()) upstream.close();
  }
}
