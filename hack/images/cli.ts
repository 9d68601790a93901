import { Argument, Command } from "commander";
import { buildImages, IMAGE_NAMES, type ImageName } from "./build-images.ts";

const program = new Command("images").description("Container images, made without a container engine or a registry");

program
  .command("build")
  .description("write dist/images/<name>.tar; load it with: npm run cluster -- load dist/images/<name>.tar")
  .addArgument(new Argument("[name]").choices([...IMAGE_NAMES, "all"]).default("all"))
  .action(async (name: ImageName | "all") => {
    const names = name === "all" ? IMAGE_NAMES : [name];
    for (const image of await buildImages(names, process.env, line => console.error(`images: ${line}`))) {
      console.log(`${image.ref} ${image.path}${image.made ? "" : " (unchanged)"}`);
    }
  });

try {
  await program.parseAsync();
} catch (error) {
  console.error(`images: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
