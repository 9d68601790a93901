import type { Command } from "commander";
import type { CommandContext } from "../command-context.ts";

export function addVersion(program: Command, { terminal }: CommandContext, version: string): void {
  program
    .command("version")
    .description("prints the version of this program")
    .action(() => terminal.write(`fairway ${version}\n`));
}
