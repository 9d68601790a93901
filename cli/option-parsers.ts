import { InvalidArgumentError, Option } from "commander";
import { parseDurationMs } from "../api/meta/go-format.ts";

/** Readers of option values for commander; what they throw becomes a usage error that names the option. */

export function durationMs(text: string): number {
  const ms = parseDurationMs(text);
  if (ms === undefined || ms < 0) throw new InvalidArgumentError("Expected a duration such as 90s, 5m or 1h30m.");
  return ms;
}

export const numberIn =
  (min: number, max: number) =>
  (text: string): number => {
    const value = text.trim() === "" ? Number.NaN : Number(text);
    if (!Number.isFinite(value) || value < min || value > max) {
      throw new InvalidArgumentError(`Expected a number in [${min}, ${max}].`);
    }
    return value;
  };

export const integerIn =
  (min: number, max: number) =>
  (text: string): number => {
    const value = numberIn(min, max)(text);
    if (!Number.isInteger(value)) throw new InvalidArgumentError(`Expected a whole number in [${min}, ${max}].`);
    return value;
  };

/** For options that may be given several times. */
export const collect =
  <T>(parse: (text: string) => T) =>
  (text: string, before: readonly T[] = []): readonly T[] => [...before, parse(text)];

/** A reader from one that gives undefined for what it cannot read. */
export const expecting =
  <T>(parse: (text: string) => T | undefined, expected: string) =>
  (text: string): T => {
    const value = parse(text);
    if (value === undefined) throw new InvalidArgumentError(`Expected ${expected}.`);
    return value;
  };

/** An option whose default is written as a user would write it, and shown so in the help. */
export const withDefault = <T>(flags: string, description: string, parse: (text: string) => T, text: string): Option =>
  new Option(flags, description).argParser(parse).default(parse(text), text);

export type OutputFormat = "table" | "json";

export const outputOption = (): Option =>
  new Option("-o, --output <format>", "what is printed").choices(["table", "json"]).default("table");
