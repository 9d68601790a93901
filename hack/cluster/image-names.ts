/** The names of the images that `ctr images import` says it saved. */
export function importedImageNames(output: string): string[] {
  return output.split("\n").flatMap(line => {
    const [name, state] = line.trim().split(/\s+/);
    return name !== undefined && state === "saved" ? [name] : [];
  });
}
