import type * as Resvg from "@resvg/resvg-js";
import { CliError } from "../cli-error.ts";

/** Loaded only when it is asked for, and not part of the image: it has native code for each platform. */
const RESVG = "@resvg/resvg-js";

/** @throws CliError when the renderer is not installed */
export async function renderPng(svg: string): Promise<Uint8Array> {
  let resvg: typeof Resvg;
  try {
    resvg = (await import(RESVG)) as typeof Resvg;
  } catch (error) {
    throw new CliError("failed", `--png needs the npm package ${RESVG} (npm install ${RESVG}); --svg works without`, {
      cause: error,
    });
  }
  return new resvg.Resvg(svg, { fitTo: { mode: "zoom", value: 2 } }).render().asPng();
}
