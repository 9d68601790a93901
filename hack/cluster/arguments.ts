import { Command, InvalidArgumentError } from "commander";

/** What the user asked for. */
export type Request = { readonly target: Target } & (
  | { readonly command: "up"; readonly parentPid: number | undefined }
  | { readonly command: "down" | "status" | "kubeconfig" }
  | { readonly command: "load"; readonly tar: string }
);

/** A local cluster by its name, or the cluster of KUBECONFIG. */
export type Target = { readonly kind: "local"; readonly name: string } | { readonly kind: "current" };

interface Options {
  readonly name: string;
  readonly useCurrent?: true;
}

interface UpOptions extends Options {
  readonly parentPid?: number;
}

/**
 * Reads the command line.
 * @param ownParentPid the process that called this one
 * @param configure changes the commands before they read, e.g. so that tests see errors thrown
 */
export function parseArguments(
  args: readonly string[],
  defaultName: string,
  configure: (command: Command) => void = () => undefined,
): Request {
  let request: Request | undefined;
  const program = new Command("cluster").description("A local one-node Kubernetes for development and tests.");

  const add = (usage: string, description: string): Command =>
    program
      .command(usage)
      .description(description)
      .option("--name <name>", "which of several clusters (default: FAIRWAY_CLUSTER, or else fairway)", defaultName)
      .option("--use-current", "work with the cluster of KUBECONFIG instead of a local one");
  const targetOf = (options: Options): Target =>
    options.useCurrent === true ? { kind: "current" } : { kind: "local", name: options.name };

  add("up", "make the cluster, or find it running")
    .option("--parent-pid <pid>", "a new cluster ends when the process <pid> does (in a shell: $$)", parsePid)
    .action((options: UpOptions) => {
      request = { command: "up", target: targetOf(options), parentPid: options.parentPid };
    });
  for (const [command, description] of [
    ["down", "end the cluster and remove all its state"],
    ["status", "show the node, the pods, and where the logs are"],
    ["kubeconfig", "print the path of the kubeconfig"],
  ] as const) {
    add(command, description).action((options: Options) => {
      request = { command, target: targetOf(options) };
    });
  }
  add("load <tar>", "import an image from a tar (OCI layout or docker save)").action(
    (tar: string, options: Options) => {
      request = { command: "load", target: targetOf(options), tar };
    },
  );

  for (const command of [program, ...program.commands]) configure(command);
  program.parse(args, { from: "user" });
  if (request === undefined) throw new InvalidArgumentError("no command");
  return request;
}

function parsePid(text: string): number {
  const pid = Number(text);
  if (!Number.isInteger(pid) || pid < 1) throw new InvalidArgumentError(`must be a process id, and is "${text}"`);
  return pid;
}
