import { connect, type ClientHttp2Session, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";
import type { ConnectionOptions } from "node:tls";

export interface H2Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly trailers: IncomingHttpHeaders;
  readonly informational: readonly number[];
  readonly body: string;
}

/** A client for HTTP/2, with TLS where its options are given, else by prior knowledge; close it after use. */
export class H2Client {
  readonly session: ClientHttp2Session;

  constructor(port: number, tls?: ConnectionOptions) {
    this.session = tls === undefined ? connect(`http://127.0.0.1:${port}`) : connect(`https://127.0.0.1:${port}`, tls);
  }

  request(headers: OutgoingHttpHeaders, body?: string): Promise<H2Answer> {
    return new Promise((resolve, reject) => {
      const stream = this.session.request(headers, { endStream: body === undefined });
      let answer: IncomingHttpHeaders = {};
      let trailers: IncomingHttpHeaders = {};
      const informational: number[] = [];
      const chunks: Buffer[] = [];
      stream.on("headers", fields => informational.push(Number(fields[":status"])));
      stream.on("response", fields => (answer = fields));
      stream.on("trailers", (fields: IncomingHttpHeaders) => (trailers = fields));
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("error", reject);
      stream.on("end", () =>
        resolve({
          status: Number(answer[":status"]),
          headers: answer,
          trailers,
          informational,
          body: Buffer.concat(chunks).toString(),
        }),
      );
      if (body !== undefined) stream.end(body);
    });
  }

  close(): void {
    this.session.destroy();
  }
}
