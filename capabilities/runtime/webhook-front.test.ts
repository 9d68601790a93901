import { Agent, request } from "node:https";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createAuthority, issueServerCertificate, type KeyPair } from "./certificate-authority.ts";
import { silentLogger } from "./logging.ts";
import { createWebhookFront, type WebhookFront } from "./webhook-front.ts";

const review = (fields: object = {}) => ({
  request: { uid: "u1", operation: "CREATE", kind: { group: "g", version: "v1", kind: "Thing" }, ...fields },
});

interface Reply {
  readonly code: number;
  readonly body: string;
  readonly certificate: string;
  readonly connection: string | undefined;
}

describe("webhook front", () => {
  let authority: KeyPair;
  let front: WebhookFront;
  let metrics: Registry;
  let port: number;
  let peprAnswer: (kind: string, body: unknown) => unknown;
  let asked: string[];

  beforeEach(async () => {
    authority = await createAuthority(Date.now(), 10);
    metrics = new Registry();
    asked = [];
    peprAnswer = () => ({ response: { uid: "u1", allowed: true } });
    front = createWebhookFront({
      log: silentLogger,
      metrics,
      pepr: {
        review: async (kind, body) => {
          asked.push(kind);
          return Buffer.from(JSON.stringify(peprAnswer(kind, JSON.parse(body.toString()))));
        },
      },
    });
    port = await front.listen(0, await issueServerCertificate(authority, ["localhost"], Date.now(), 5));
  });
  afterEach(() => front.close(0));

  const post = (
    path: string,
    body: string,
    headers: Record<string, string> = {},
    method = "POST",
    agent: Agent | false = false,
  ): Promise<Reply> =>
    new Promise((resolve, reject) => {
      const sent = request(
        {
          host: "127.0.0.1",
          servername: "localhost",
          port,
          path,
          method,
          ca: authority.certificate,
          agent,
          headers: { "content-type": "application/json", ...headers },
        },
        response => {
          const socket = response.socket as unknown as { getPeerCertificate(): { fingerprint256: string } };
          const certificate = socket.getPeerCertificate().fingerprint256;
          let text = "";
          response.setEncoding("utf8").on("data", chunk => (text += chunk));
          response.on("end", () =>
            resolve({
              code: response.statusCode ?? 0,
              body: text,
              certificate,
              connection: response.headers.connection,
            }),
          );
        },
      );
      sent.on("error", reject);
      sent.end(method === "GET" ? undefined : body);
    });
  const answer = async (path: string, body: object = review()): Promise<unknown> =>
    (JSON.parse((await post(path, JSON.stringify(body))).body) as { response: unknown }).response;

  it("hands reviews to Pepr and gives its patch back", async () => {
    peprAnswer = kind => ({
      response: { uid: "u1", allowed: true, ...(kind === "mutate" ? { patch: "W10=", patchType: "JSONPatch" } : {}) },
    });
    expect(await answer("/mutate?timeout=10s")).toEqual({
      uid: "u1",
      allowed: true,
      patch: "W10=",
      patchType: "JSONPatch",
    });
    expect(await answer("/validate")).toEqual({ uid: "u1", allowed: true });
    expect(asked).toEqual(["mutate", "validate"]);
  });

  it("gives a refusal the form of Kubernetes' own webhooks", async () => {
    peprAnswer = () => ({
      response: { uid: "u1", allowed: false, status: { code: 422, message: "validation failed: x" }, warnings: ["w"] },
    });
    expect(await answer("/validate")).toEqual({
      uid: "u1",
      allowed: false,
      status: { code: 400, reason: "BadRequest", message: "validation failed: x" },
      warnings: ["w"],
    });
  });

  it("tells why a mutation failed", async () => {
    peprAnswer = () => ({
      response: { uid: "u1", allowed: false, result: "rejected", warnings: ["Action failed: no such thing"] },
    });
    expect(await answer("/mutate")).toEqual({
      uid: "u1",
      allowed: false,
      status: { code: 400, reason: "BadRequest", message: "no such thing" },
    });
  });

  it("refuses an object that Pepr could not read", async () => {
    const large = review({ object: { data: "x".repeat(2 * 1024 * 1024) } });
    expect(await answer("/validate", large)).toMatchObject({
      allowed: false,
      status: {
        code: 413,
        message: expect.stringMatching(/^object too large: \d+ bytes in review, limit 2097152$/) as string,
      },
    });
    expect(asked).toEqual([]);
  });

  it("answers 500 when Pepr fails or answers for another request, so that the failure policy decides", async () => {
    peprAnswer = () => ({ response: { uid: "other", allowed: true } });
    expect((await post("/validate", JSON.stringify(review()))).code).toBe(500);
    peprAnswer = () => {
      throw new Error("down");
    };
    expect((await post("/validate", JSON.stringify(review()))).code).toBe(500);
    expect(await metrics.metrics()).toContain('outcome="error"} 2');
  });

  it("takes nothing but admission reviews", async () => {
    expect((await post("/other", "{}")).code).toBe(404);
    expect((await post("/validate", "", {}, "GET")).code).toBe(405);
    expect((await post("/validate", "{}", { "content-type": "text/plain" })).code).toBe(415);
    expect((await post("/validate", "{}")).code).toBe(400);
    expect((await post("/validate", "not json")).code).toBe(400);
    expect((await post("/validate", "", { "content-length": "99999999" })).code).toBe(413);
  });

  it("ends connections with their next answer once it retires", async () => {
    const agent = new Agent({ keepAlive: true });
    expect((await post("/validate", JSON.stringify(review()), {}, "POST", agent)).connection).toBe("keep-alive");
    front.retire();
    expect((await post("/validate", JSON.stringify(review()), {}, "POST", agent)).connection).toBe("close");
    agent.destroy();
  });

  it("serves with a new certificate without a restart", async () => {
    const first = (await post("/validate", JSON.stringify(review()))).certificate;
    front.useCertificate(await issueServerCertificate(authority, ["localhost"], Date.now(), 6));
    const second = (await post("/validate", JSON.stringify(review()))).certificate;
    expect(second).not.toBe(first);
  });
});
