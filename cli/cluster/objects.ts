import { z } from "zod";
import { CliError } from "../cli-error.ts";
import type { ApiAnswer, ClusterApi } from "./cluster-api.ts";

/** What the API server says when it refuses. */
const statusSchema = z.object({ kind: z.literal("Status"), message: z.string().optional() });

/** True when the API server itself answers, not a pod behind its proxy. */
export function isOfApiServer(answer: ApiAnswer): boolean {
  return statusSchema.safeParse(answer.body).success;
}

/** The answer of a refusal in words. */
export function messageOf({ status, body }: ApiAnswer): string {
  const parsed = statusSchema.safeParse(body);
  if (parsed.success && parsed.data.message !== undefined) return parsed.data.message;
  return typeof body === "string" && body.trim() !== "" ? body.trim().slice(0, 300) : `status ${status}`;
}

/** The error for a refusal; `what` names what was wanted. */
export function refused(answer: ApiAnswer, what: string): CliError {
  const message = `${what}: ${messageOf(answer)}`;
  if (answer.status === 401 || answer.status === 403) return new CliError("forbidden", message);
  if (answer.status === 404) return new CliError("notFound", message);
  return new CliError(answer.status >= 500 || answer.status === 429 ? "unavailable" : "failed", message);
}

function parsed<T>(schema: z.ZodType<T>, body: unknown, what: string): T {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const where = issue === undefined ? "" : ` at ${issue.path.join(".") || "its root"}: ${issue.message}`;
  throw new CliError("failed", `${what}: this version does not understand the answer${where}`, { cause: result.error });
}

/** Reads one object. @throws CliError, also when it does not exist */
export async function readObject<T>(api: ClusterApi, path: string, schema: z.ZodType<T>, what: string): Promise<T> {
  const found = await findObject(api, path, schema, what);
  if (found === undefined) throw new CliError("notFound", `${what} not found`);
  return found;
}

/** As readObject, but undefined when it does not exist. */
export async function findObject<T>(
  api: ClusterApi,
  path: string,
  schema: z.ZodType<T>,
  what: string,
): Promise<T | undefined> {
  const answer = await api.get(path);
  if (answer.status === 404) return undefined;
  if (answer.status !== 200) throw refused(answer, what);
  return parsed(schema, answer.body, what);
}

/** Objects of one page; more than a few thousand of a kind are read page by page. */
const PAGE = "500";

/** Reads all objects of a list. @throws CliError */
export async function listObjects<T>(
  api: ClusterApi,
  path: string,
  schema: z.ZodType<T>,
  what: string,
  query: Readonly<Record<string, string>> = {},
): Promise<T[]> {
  const page = z.object({
    metadata: z.object({ continue: z.string().optional() }).optional(),
    items: z.array(schema),
  });
  const all: T[] = [];
  let next: string | undefined;
  do {
    const answer = await api.get(path, { ...query, limit: PAGE, ...(next === undefined ? {} : { continue: next }) });
    if (answer.status !== 200) throw refused(answer, what);
    const { items, metadata } = parsed(page, answer.body, what);
    all.push(...items);
    next = metadata?.continue === "" ? undefined : metadata?.continue;
  } while (next !== undefined);
  return all;
}

/** `GET` on a pod through the API server's proxy. The pod's own refusals come back as they are. */
export async function getFromPod(
  api: ClusterApi,
  pod: { readonly namespace: string; readonly name: string; readonly port: number },
  path: string,
  query: Readonly<Record<string, string>> = {},
): Promise<ApiAnswer> {
  const answer = await api.get(`/api/v1/namespaces/${pod.namespace}/pods/${pod.name}:${pod.port}/proxy${path}`, query);
  if (answer.status !== 200 && isOfApiServer(answer)) throw refused(answer, `pod ${pod.namespace}/${pod.name}`);
  return answer;
}

/** The answer of a pod by its schema. */
export function parsePodAnswer<T>(answer: ApiAnswer, schema: z.ZodType<T>, what: string): T {
  if (answer.status !== 200) throw refused(answer, what);
  return parsed(schema, answer.body, what);
}
