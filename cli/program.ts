import { Command, CommanderError } from "commander";
import packageJson from "../package.json" with { type: "json" };
import { CliError, EXIT } from "./cli-error.ts";
import { addClusterOptions } from "./cluster/options.ts";
import type { CommandContext } from "./command-context.ts";
import { addFlow } from "./commands/flow.ts";
import { addSimulate } from "./commands/simulate.ts";
import { addVersion } from "./commands/version.ts";
import { addWhy } from "./commands/why.ts";

/** The whole command line. */
export function createProgram(context: CommandContext): Command {
  const { terminal } = context;
  const program = addClusterOptions(new Command("fairway"))
    .description("Serverless services that scale by their own decisions and keep their traffic fair.")
    .version(packageJson.version, "--version", "prints the version")
    .helpCommand("help [command]", "help for a command")
    .showHelpAfterError("(--help lists what there is)")
    .exitOverride()
    .configureOutput({
      writeOut: text => terminal.write(text),
      writeErr: text => terminal.writeError(text),
      getOutHelpWidth: () => terminal.columns,
      getErrHelpWidth: () => terminal.columns,
    });
  addWhy(program, context);
  addFlow(program, context);
  addSimulate(program, context);
  addVersion(program, context, packageJson.version);
  return program;
}

/** Runs one command line (without node and script) and gives the exit code. Never rejects. */
export async function runCommandLine(argv: readonly string[], context: CommandContext): Promise<number> {
  try {
    await createProgram(context).parseAsync([...argv], { from: "user" });
    return EXIT.ok;
  } catch (error) {
    // commander has printed its own already.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    if (context.signal.aborted) return EXIT.failed;
    const message = error instanceof Error ? error.message : String(error);
    context.terminal.writeError(`${context.terminal.style("red", "error:")} ${message}\n`);
    if (error instanceof CliError) return error.exitCode;
    // Not foreseen: what happened is needed to mend it.
    if (error instanceof Error && error.stack !== undefined) context.terminal.writeError(`${error.stack}\n`);
    return EXIT.failed;
  }
}
