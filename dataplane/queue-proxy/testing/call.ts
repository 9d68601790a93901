import { request, type IncomingMessage } from "node:http";

export interface CallOptions {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
}

export interface CallResult {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
  /** False: the answer was cut off. */
  readonly complete: boolean;
}

/** One request on a connection of its own. */
export function call(url: string, options: CallOptions = {}): Promise<CallResult> {
  const { promise, resolve, reject } = Promise.withResolvers<CallResult>();
  const { path = "/", method = "GET", headers = {}, body, signal } = options;
  const sent = request(url + path, { method, headers, agent: false, ...(signal === undefined ? {} : { signal }) });
  sent.on("error", reject);
  sent.on("response", res => {
    let text = "";
    res.setEncoding("utf8");
    res.on("data", (chunk: string) => (text += chunk));
    res.on("error", () => undefined);
    res.on("close", () =>
      resolve({ status: res.statusCode ?? 0, headers: res.headers, body: text, complete: res.complete }),
    );
  });
  sent.end(body);
  return promise;
}
