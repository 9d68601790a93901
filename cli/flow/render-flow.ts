import { formatMs, formatNumber } from "../render/format.ts";
import { renderTable } from "../render/table.ts";
import type { Terminal } from "../terminal.ts";
import type { FlowExplanation } from "./explain-flow.ts";
import type { GatewayStates } from "./gateways.ts";
import type { AskedRequest } from "./request.ts";

const right = (head: string) => ({ head, align: "right" }) as const;
const section = (terminal: Terminal, title: string): string => `\n${terminal.style("bold", title)}\n`;

export function renderExplanation(
  request: AskedRequest,
  host: string,
  explanation: FlowExplanation,
  terminal: Terminal,
): string {
  const { target, identity, verb, path, missed, schema, level, flow, hand, now, problems } = explanation;
  const resource = target.tag === "" ? "services" : `services/${target.tag}`;
  const facts: [string, string][] = [
    ["request", `${request.method} ${host}${request.path}`],
    ["user", `${identity.user}, groups ${identity.groups.join(", ")}`],
    ["read as", `${verb} ${resource} ${target.namespace}/${target.service}, path ${path}`],
    ["flow schema", `${schema.name} (precedence ${schema.precedence})`],
    ["priority level", levelInWords(level)],
    ["flow", flowInWords(schema.distinguisher, flow, level.type)],
  ];
  if (hand.length > 0) facts.push(["queues", `${hand.length}, dealt by the flow: ${hand.join(", ")}`]);
  const widest = Math.max(...facts.map(([name]) => name.length));
  let text = facts.map(([name, value]) => `${terminal.style("bold", name.padEnd(widest))}  ${value}\n`).join("");

  text += section(terminal, "schemas, in the order they are tried");
  text += renderTable(
    [right("precedence"), { head: "schema" }, { head: "result" }],
    [
      ...missed.map(miss => [String(miss.precedence), miss.schema, missInWords(miss.rules)]),
      [String(schema.precedence), schema.name, "matches"].map(cell => terminal.style("green", cell)),
    ],
  );
  if (now.length > 0) {
    text += section(terminal, `${level.name} now`);
    text += renderTable(
      [
        { head: "gateway" },
        right("limit"),
        right("nominal"),
        right("seats in use"),
        right("waiting"),
        { head: "queue" },
      ],
      now.map(one => [
        one.gateway,
        level.type === "Exempt" ? "none" : String(one.currentLimit),
        String(one.nominal),
        String(one.seatsInUse),
        String(one.waiting),
        one.queue === undefined ? "" : `${one.queue.index} (${one.queue.waiting} waiting)`,
      ]),
    );
  }
  if (problems.length > 0) text += `\n${problems.map(line => `${terminal.style("yellow", "!")} ${line}\n`).join("")}`;
  return text;
}

function levelInWords({ name, type, shares, shareSum, response }: FlowExplanation["level"]): string {
  if (type === "Exempt") return `${name} (Exempt: never waits, never refused)`;
  const atLimit = response === "Queue" ? "waits when it is full" : "is refused when it is full";
  return `${name} (Limited: ${shares} of ${shareSum} shares, ${atLimit})`;
}

function flowInWords(distinguisher: string | undefined, flow: string, type: string): string {
  if (type === "Exempt") return "none: exempt requests are not divided into flows";
  if (distinguisher === undefined) return "all requests of the schema are one";
  return `"${flow}" (${distinguisher})`;
}

/** What stood against each rule. */
function missInWords(rules: readonly (readonly string[])[]): string {
  if (rules.length === 0) return "no: it has no rules";
  const reasons = rules.map(ruleInWords);
  if (reasons.length === 1) return `no: ${reasons[0]}`;
  return `no: ${reasons.map((reason, i) => `rule ${i + 1}: ${reason}`).join(", ")}`;
}

/** What its rules have against the request says more than which it lacks altogether. */
function ruleInWords(mismatches: readonly string[]): string {
  const isLacking = (mismatch: string): boolean => mismatch.startsWith("no ");
  const all = [...new Set(mismatches)];
  const against = all.filter(mismatch => !isLacking(mismatch)).join(" and ");
  const lacking = all.filter(isLacking).join(" and ");
  if (lacking === "") return against;
  return against === "" ? `it has ${lacking}` : `${against}; it has ${lacking}`;
}

/** Requests that are listed. */
const MOST_REQUESTS = 10;
const MOST_REVISIONS = 20;

interface LevelSum {
  nominal: number;
  limit: number;
  seats: number;
  executing: number;
  waiting: number;
  dispatched: number;
  refused: number;
  readonly type: string;
}

/** Requests dispatched by level up to one moment, to tell rates from. */
export interface Moment {
  readonly atMs: number;
  readonly dispatched: ReadonlyMap<string, number>;
}

export function momentOf({ states }: GatewayStates, atMs: number): Moment {
  return { atMs, dispatched: new Map([...levelSums(states)].map(([name, { dispatched }]) => [name, dispatched])) };
}

function levelSums(states: GatewayStates["states"]): Map<string, LevelSum> {
  const sums = new Map<string, LevelSum>();
  for (const { flowControl } of states) {
    for (const level of flowControl.levels) {
      let sum = sums.get(level.name);
      if (sum === undefined) {
        sum = { nominal: 0, limit: 0, seats: 0, executing: 0, waiting: 0, dispatched: 0, refused: 0, type: level.type };
        sums.set(level.name, sum);
      }
      sum.nominal += level.nominal;
      sum.limit += level.currentLimit;
      sum.seats += level.seatsInUse;
      sum.executing += level.executing;
      sum.waiting += level.waiting;
      sum.dispatched += level.dispatched;
      sum.refused += level.rejected + level.timedOut;
    }
  }
  return sums;
}

/** All gateways together: levels, revisions with requests, and who has waited longest. */
export function renderTop(
  { states, problems }: GatewayStates,
  terminal: Terminal,
  nowMs: number,
  before: Moment | undefined,
): string {
  const names = states.map(({ gateway }) => gateway).join(", ");
  let text = `${terminal.style("bold", "gateways")}  ${names}\n`;
  for (const problem of problems) text += `${terminal.style("yellow", "!")} ${problem}\n`;
  text += section(terminal, "priority levels");
  text += levels(states, terminal, nowMs, before);
  for (const note of fullLevels(states)) text += `${terminal.style("yellow", "!")} ${note}\n`;
  text += section(terminal, "revisions");
  text += revisions(states);
  text += section(terminal, "waiting longest for a seat");
  text += waiting(states);
  return text;
}

function levels(
  states: GatewayStates["states"],
  terminal: Terminal,
  nowMs: number,
  before: Moment | undefined,
): string {
  return renderTable(
    [
      { head: "level" },
      ...["seats", "limit", "nominal", "executing", "waiting", "refused"].map(right),
      ...(before === undefined ? [] : [right("per second")]),
    ],
    [...levelSums(states)].map(([name, sum]) => {
      const since = before?.dispatched.get(name);
      const elapsedMs = before === undefined ? 0 : nowMs - before.atMs;
      // A gateway that left takes its count with it.
      const rate =
        since === undefined || elapsedMs <= 0 ? undefined : Math.max(0, sum.dispatched - since) / (elapsedMs / 1000);
      const cells = [
        name,
        String(sum.seats),
        sum.type === "Exempt" ? "none" : String(sum.limit),
        String(sum.nominal),
        String(sum.executing),
        String(sum.waiting),
        String(sum.refused),
        ...(before === undefined ? [] : [rate === undefined ? "" : formatNumber(rate)]),
      ];
      return sum.waiting > 0 ? cells.map(cell => terminal.style("yellow", cell)) : cells;
    }),
  );
}

/** Levels whose requests wait, though their services have room: what somebody new to it asks first. */
function fullLevels(states: GatewayStates["states"]): string[] {
  return states.flatMap(({ gateway, flowControl }) =>
    flowControl.levels
      .filter(({ waiting }) => waiting > 0)
      .map(
        ({ name, waiting, currentLimit, max }) =>
          `${name}: ${waiting} wait at ${gateway}, where it has ${currentLimit} seats now; every 10 s the limits follow the demand, this one up to ${max}`,
      ),
  );
}

function revisions(states: GatewayStates["states"]): string {
  const sums = new Map<
    string,
    { places: number | undefined; inFlight: number; waiting: number; byLevel: Map<string, number> }
  >();
  for (const state of states) {
    for (const [name, { places, inFlight, waiting: count, levels: perLevel = [] }] of Object.entries(state.revisions)) {
      let sum = sums.get(name);
      if (sum === undefined) sums.set(name, (sum = { places: 0, inFlight: 0, waiting: 0, byLevel: new Map() }));
      sum.places = places === "unlimited" || sum.places === undefined ? undefined : sum.places + places;
      sum.inFlight += inFlight;
      sum.waiting += count;
      for (const one of perLevel) sum.byLevel.set(one.level, (sum.byLevel.get(one.level) ?? 0) + one.waiting);
    }
  }
  const busy = [...sums]
    .filter(([, sum]) => sum.inFlight + sum.waiting > 0)
    .sort(([, a], [, b]) => b.waiting - a.waiting || b.inFlight - a.inFlight);
  if (busy.length === 0) return "no requests\n";
  const shown = busy.slice(0, MOST_REVISIONS);
  const byLevel = (sum: { readonly byLevel: ReadonlyMap<string, number> }): string =>
    [...sum.byLevel]
      .filter(([, count]) => count > 0)
      .map(([level, count]) => `${level || "any"} ${count}`)
      .join(", ");
  const anyLevel = shown.some(([, sum]) => byLevel(sum) !== "");
  const table = renderTable(
    [
      { head: "revision" },
      ...["in flight", "places", "waiting"].map(right),
      ...(anyLevel ? [{ head: "waiting by level" }] : []),
    ],
    shown.map(([name, sum]) => [
      name,
      String(sum.inFlight),
      sum.places === undefined ? "unlimited" : String(sum.places),
      String(sum.waiting),
      ...(anyLevel ? [byLevel(sum)] : []),
    ]),
  );
  return busy.length > shown.length ? `${table}... and ${busy.length - shown.length} more\n` : table;
}

function waiting(states: GatewayStates["states"]): string {
  const requests = states.flatMap(({ gateway, flowControl }) =>
    flowControl.longestWaiting.map(request => ({ gateway, ...request })),
  );
  if (requests.length === 0) return "nobody waits\n";
  const shown = requests.toSorted((a, b) => b.waitedMs - a.waitedMs).slice(0, MOST_REQUESTS);
  const table = renderTable(
    [right("waited"), { head: "level" }, { head: "schema" }, { head: "flow" }, right("queue"), { head: "gateway" }],
    shown.map(one => [formatMs(one.waitedMs), one.level, one.schema, one.flow, String(one.queue), one.gateway]),
  );
  const all = states.flatMap(({ flowControl }) => flowControl.levels).reduce((sum, level) => sum + level.waiting, 0);
  return all > shown.length ? `${table}... and ${all - shown.length} more\n` : table;
}
