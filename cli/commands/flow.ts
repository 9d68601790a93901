import type { Command } from "commander";
import { clusterOptionsOf } from "../cluster/options.ts";
import { CliError, EXIT } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { explainFlow, readFlowObjects, readTarget } from "../flow/explain-flow.ts";
import { readGateways, type GatewayStates } from "../flow/gateways.ts";
import { momentOf, renderExplanation, renderTop, type Moment } from "../flow/render-flow.ts";
import { splitAddress, userOf, type AskedRequest } from "../flow/request.ts";
import { collect, durationMs, expecting, outputOption, withDefault, type OutputFormat } from "../option-parsers.ts";
import { redraw } from "../watch.ts";

interface ExplainOptions {
  readonly as?: string;
  readonly group?: readonly string[];
  readonly method: string;
  readonly header?: readonly (readonly [string, string])[];
  readonly output: OutputFormat;
}

interface TopOptions {
  readonly once?: true;
  readonly interval: number;
  readonly output: OutputFormat;
}

const header = expecting((text: string): readonly [string, string] | undefined => {
  const colon = text.indexOf(":");
  return colon <= 0 ? undefined : [text.slice(0, colon).trim(), text.slice(colon + 1).trim()];
}, "'Name: value'");
const user = expecting(userOf, "a user, or system:serviceaccount:NAMESPACE:NAME");
const method = expecting(
  (text: string) => (/^[A-Za-z-]+$/.test(text) ? text.toUpperCase() : undefined),
  "an HTTP method",
);

export function addFlow(program: Command, context: CommandContext): void {
  const flow = program.command("flow").description("who goes first and who waits at the gateways");
  flow
    .command("explain")
    .argument("<host/path>", "address of the request: HOST[/PATH], with or without http://")
    .summary("which flow schema, priority level, flow and queue a request gets")
    .description(
      "Tells which flow schema takes a request and why those before it do not, its priority level, flow and queues, and that level's\n" +
        "limits and queues at each gateway now. Nothing is sent: the gateway's own classifier runs here on the objects of the cluster.\n" +
        "Needs list on routes, prioritylevelconfigurations and flowschemas, and for the limits list on pods and get on pods/proxy in\n" +
        "the system namespace.",
    )
    .option(
      "--as <user>",
      "who sends it: a user, or system:serviceaccount:NAMESPACE:NAME (default: nobody known)",
      user,
    )
    .option("--group <name>", "a group of the user; again for more", collect(String))
    .option("-X, --method <method>", "HTTP method", method, "GET")
    .option("-H, --header <header>", "a header of the request, 'Name: value'; again for more", collect(header))
    .addOption(outputOption())
    .action(async (address: string, options: ExplainOptions, command: Command) => {
      const { terminal, signal } = context;
      const { systemNamespace, ...connection } = clusterOptionsOf(command);
      const { host, path } = splitAddress(address);
      if (host === "") throw new CliError("usage", `"${address}" has no host: HOST[/PATH] is expected`);
      if (options.as === undefined && options.group !== undefined) {
        throw new CliError("usage", "--group needs --as: who is not known is in no group but system:unauthenticated");
      }
      const request: AskedRequest = {
        method: options.method,
        path,
        headers: options.header ?? [],
        user: options.as,
        groups: options.group ?? [],
      };
      const api = await context.connect(connection, signal);
      try {
        const [target, objects, gateways] = await Promise.all([
          readTarget(api, host),
          readFlowObjects(api),
          readGateways(api, systemNamespace).catch(withoutGateways),
        ]);
        for (const problem of gateways.problems) terminal.writeError(`warning: no limits: ${problem}\n`);
        const explanation = explainFlow(request, target, objects, gateways.states);
        if (options.output === "json") terminal.write(`${JSON.stringify(explanation, undefined, 2)}\n`);
        else terminal.write(renderExplanation(request, host, explanation, terminal));
      } finally {
        await api.close();
      }
    });

  flow
    .command("top")
    .summary("priority levels, seats, queues and who waits, live")
    .description(
      "Shows all gateways together: the seats and queues of each priority level, the places of each revision with requests, and who has\n" +
        "waited longest. Again every --interval until interrupted; once with --once, with -o json, and without a terminal.\n" +
        "Needs list on pods and get on pods/proxy in the system namespace.",
    )
    .option("--once", "only once")
    .addOption(withDefault("--interval <duration>", "time between two pictures", durationMs, "2s"))
    .addOption(outputOption())
    .action(async (options: TopOptions, command: Command) => {
      const { terminal, signal, nowMs } = context;
      const { systemNamespace, ...connection } = clusterOptionsOf(command);
      const api = await context.connect(connection, signal);
      let before: Moment | undefined;
      const draw = async (): Promise<string> => {
        const states = await readGateways(api, systemNamespace);
        const picture = renderTop(states, terminal, nowMs(), before);
        before = momentOf(states, nowMs());
        return picture;
      };
      try {
        if (options.output === "json") {
          terminal.write(`${JSON.stringify(await readGateways(api, systemNamespace), undefined, 2)}\n`);
        } else if (options.once === true || !terminal.interactive) terminal.write(await draw());
        else await redraw(context, options.interval, draw);
      } finally {
        await api.close();
      }
    });
}

/** What schema takes a request can be told without the gateways; their limits cannot. */
function withoutGateways(error: unknown): GatewayStates {
  if (error instanceof CliError && error.exitCode !== EXIT.failed) return { states: [], problems: [error.message] };
  throw error;
}
