import type { GatewayReport } from "../../api/wire/stats.ts";

/**
 * What each gateway says it has programmed. A Route may be called ready when every gateway that receives traffic
 * routes it: whoever reads `Ready=True` may send a request to any gateway at once.
 *
 * Kept by the leading operator only, in memory: a new leader asks each gateway for its whole table (`needFull`).
 */
export class GatewayRegistry {
  readonly #gateways = new Map<string, ProgrammedTable>();
  readonly #listeners: ((routeKey: string) => void)[] = [];
  readonly #readyGateways: () => readonly string[];

  /** `readyGateways` lists the pod names that take traffic now; called at each question, never blocks. */
  constructor(readyGateways: () => readonly string[]) {
    this.#readyGateways = readyGateways;
  }

  /** Takes one report; the answer goes back to the gateway. Reports that overtook each other are ignored. */
  accept(report: GatewayReport): { readonly needFull: boolean } {
    const known = this.#gateways.get(report.gateway);
    const sameInstance = known?.instance === report.instance;
    if (known !== undefined && sameInstance && report.sequence <= known.sequence) return { needFull: false };
    if (!report.full && !sameInstance) return { needFull: true };

    const programmed = new Map(report.full ? [] : known?.programmed);
    for (const [route, fingerprint] of Object.entries(report.programmed)) programmed.set(route, fingerprint);
    this.#gateways.set(report.gateway, { instance: report.instance, sequence: report.sequence, programmed });
    for (const route of Object.keys(report.programmed)) this.#notify(route);
    return { needFull: false };
  }

  /** True when every ready gateway, and at least one, routes this Route as `fingerprint` says. */
  isProgrammed(routeKey: string, fingerprint: string): boolean {
    return this.missing(routeKey, fingerprint).length === 0 && this.#readyGateways().length > 0;
  }

  /** The ready gateways that do not route it so yet: for the condition's message. */
  missing(routeKey: string, fingerprint: string): readonly string[] {
    return this.#readyGateways().filter(name => this.#gateways.get(name)?.programmed.get(routeKey) !== fingerprint);
  }

  /** `listener` hears the key of each route about which a gateway reported something; it must not block. */
  onChange(listener: (routeKey: string) => void): void {
    this.#listeners.push(listener);
  }

  /** Forgets gateways that exist no more. `existing`: pod names of all gateway endpoints, ready or not. */
  retain(existing: ReadonlySet<string>): void {
    for (const name of this.#gateways.keys()) if (!existing.has(name)) this.#gateways.delete(name);
  }

  /** Tells listeners of every known route: the set of ready gateways changed, and with it what may be called programmed. */
  readyGatewaysChanged(): void {
    const routes = new Set<string>();
    for (const { programmed } of this.#gateways.values()) for (const route of programmed.keys()) routes.add(route);
    for (const route of routes) this.#notify(route);
  }

  /** Called when leadership is lost: what was heard may be old when it comes back. */
  clear(): void {
    this.#gateways.clear();
  }

  #notify(routeKey: string): void {
    for (const listener of this.#listeners) listener(routeKey);
  }
}

interface ProgrammedTable {
  readonly instance: string;
  readonly sequence: number;
  readonly programmed: ReadonlyMap<string, string>;
}
