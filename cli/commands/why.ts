import type { Command } from "commander";
import { clusterOptionsOf } from "../cluster/options.ts";
import type { CommandContext } from "../command-context.ts";
import { outputOption, type OutputFormat } from "../option-parsers.ts";
import { redraw } from "../watch.ts";
import { readWhy, type Why } from "../why/read-why.ts";
import { renderWhy } from "../why/render-why.ts";

interface WhyOptions {
  readonly revision?: string;
  readonly watch?: true;
  readonly output: OutputFormat;
}

const WATCH_PERIOD_MS = 2000;

export function addWhy(program: Command, context: CommandContext): void {
  program
    .command("why")
    .argument("<service>", "name of the service")
    .summary("why a service has the number of pods it has")
    .description(
      "Explains the number of pods of a service's revisions as its autoscaler sees it now: what was observed, the number of each\n" +
        "rule, which one won (*), what it waits for, and the revision's conditions. Asks the leading operator through the API server:\n" +
        "needs get on services, revisions, the lease fairway-operator and pods/proxy in the system namespace.",
    )
    .option("--revision <name>", "only this revision (default: those with traffic, and the newest)")
    .option("-w, --watch", "again every 2 seconds")
    .addOption(outputOption())
    .action(async (service: string, options: WhyOptions, command: Command) => {
      const { terminal, signal, nowMs } = context;
      const { systemNamespace, ...connection } = clusterOptionsOf(command);
      const api = await context.connect(connection, signal);
      const draw = async (): Promise<string> => {
        const why = await readWhy(api, service, options.revision, systemNamespace, nowMs());
        return options.output === "json" ? json(why) : renderWhy(why, terminal, nowMs());
      };
      try {
        if (options.watch === true) await redraw(context, WATCH_PERIOD_MS, draw);
        else terminal.write(await draw());
      } finally {
        await api.close();
      }
    });
}

const json = (why: Why): string => `${JSON.stringify(why, undefined, 2)}\n`;
