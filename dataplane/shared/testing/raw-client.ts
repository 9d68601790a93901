import { connect, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";

/** A bare connection: sends exactly what it is told and gathers what comes back. */
export class RawClient {
  readonly socket: Socket;
  #received = "";
  #waiters: (() => void)[] = [];
  #ended = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => {
      this.#received += text;
      this.#wake();
    });
    const end = (): void => {
      this.#ended = true;
      this.#wake();
    };
    socket.on("end", end);
    socket.on("close", end);
    socket.on("error", end);
  }

  static open(port: number): Promise<RawClient> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, "127.0.0.1", () => resolve(new RawClient(socket)));
      socket.once("error", reject);
    });
  }

  /** With TLS; rejects when the handshake fails on this side. */
  static openTls(port: number, options: ConnectionOptions): Promise<RawClient> {
    return new Promise((resolve, reject) => {
      const socket = connectTls({ ...options, port, host: "127.0.0.1" }, () => resolve(new RawClient(socket)));
      socket.once("error", reject);
    });
  }

  get received(): string {
    return this.#received;
  }

  send(...lines: string[]): this {
    this.socket.write(lines.join("\r\n"), "latin1");
    return this;
  }

  /** Resolves when what came so far satisfies; rejects when the connection ends before it does. */
  async until(satisfied: (received: string) => boolean): Promise<string> {
    while (!satisfied(this.#received)) {
      if (this.#ended) throw new Error(`the connection ended after: ${this.#received}`);
      await new Promise<void>(resolve => this.#waiters.push(resolve));
    }
    return this.#received;
  }

  /** Everything until the other side ends the connection. */
  async all(): Promise<string> {
    while (!this.#ended) await new Promise<void>(resolve => this.#waiters.push(resolve));
    return this.#received;
  }

  close(): void {
    this.socket.destroy();
  }

  #wake(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const wake of waiters) wake();
  }
}
