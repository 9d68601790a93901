import { request as h1Request, type IncomingHttpHeaders } from "node:http";
import { text } from "node:stream/consumers";
import { UnsecuredJWT } from "jose";
import { afterEach, describe, expect, it } from "vitest";
import { startSubjectTestBed, type TestBed, type TestBedOptions } from "../testing/test-gateway.ts";

const HOST = "hello.default.example.com";
const LEVEL = "x-fairway-prioritylevel";
let bed: TestBed;
afterEach(() => bed.close());

const ofUser = (name: string): object => ({ kind: "User", user: { name } });
const ofGroup = (name: string): object => ({ kind: "Group", group: { name } });

/** A gateway before a service whose pod answers with the fields it got; the subject's requests are of the level `known`. */
async function start(subject: object, options: TestBedOptions = {}): Promise<void> {
  bed = await startSubjectTestBed(subject, {
    ...options,
    env: { FLOW_CONTROL_DEBUG: "true", ...options.env },
  });
  while ((await get()).status !== 200) await new Promise(resolve => setTimeout(resolve, 2));
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

function get(headers: Record<string, string | string[]> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const req = h1Request(bed.external, { headers: { host: HOST, ...headers }, agent: false }, res => {
      text(res).then(body => resolve({ status: res.statusCode ?? 0, headers: res.headers, body }), reject);
    });
    req.on("error", reject);
    req.end();
  });
}

const SPOOFED = {
  "X-Remote-User": "alice",
  "X-Remote-Group": ["system:masters", "devs"],
  "x-remote-extra-scopes": "all",
};

describe("who sends a request", () => {
  it("is not for the client to say: identity fields of anybody are dropped", async () => {
    await start(ofUser("alice"));
    const answer = await get(SPOOFED);
    expect(answer.headers[LEVEL]).toBe("catch-all");
    expect(answer.body).not.toContain("x-remote");
  });

  it("is for a configured proxy to say, and the app hears it too", async () => {
    await start(ofGroup("devs"), { env: { IDENTITY_PROXIES: "127.0.0.0/8" } });
    // The proxy vouches for the group that is never held.
    expect((await get(SPOOFED)).headers[LEVEL]).toBe("exempt");
    const answer = await get({ "x-remote-user": "bob", "x-remote-group": ["devs"] });
    expect(answer.headers[LEVEL]).toBe("known");
    expect(JSON.parse(answer.body)).toMatchObject({ "x-remote-user": "bob", "x-remote-group": "devs" });
    expect((await get()).headers[LEVEL]).toBe("catch-all");
  });

  it("shows in the token of the cluster, which goes on to the app untouched", async () => {
    await start(ofUser("system:serviceaccount:a:b"), { env: { TOKEN_REVIEW: "all" } });
    let reviews = 0;
    bed.api.onCreate = (path, object) => {
      expect(path).toBe("/apis/authentication.k8s.io/v1/tokenreviews");
      reviews++;
      const { token } = (object as { spec: { token: string } }).spec;
      const user = { username: "system:serviceaccount:a:b", groups: ["system:authenticated"] };
      return { status: token === "good" ? { authenticated: true, user } : { authenticated: false } };
    };
    for (let i = 0; i < 3; i++) {
      const answer = await get({ authorization: "Bearer good" });
      expect(answer.headers[LEVEL]).toBe("known");
      expect(JSON.parse(answer.body)).toMatchObject({ authorization: "Bearer good" });
    }
    expect(reviews).toBe(1);
    // A token that is nobody's may be the app's own: served, as anonymous.
    const other = await get({ authorization: "Bearer of-the-app" });
    expect([other.status, other.headers[LEVEL]]).toEqual([200, "catch-all"]);
  });

  it("is nobody known while the API server is away, and the request is served all the same", async () => {
    await start(ofUser("u"), { env: { TOKEN_REVIEW: "all" } });
    bed.api.isAway = true;
    const answer = await get({ authorization: "Bearer good" });
    expect([answer.status, answer.headers[LEVEL]]).toEqual([200, "catch-all"]);
    expect(await bed.registry.metrics()).toContain("fairway_gateway_token_failures_total 1");
  });

  it("is asked of the API server 64 times at a time at most, however many tokens come", async () => {
    await start(ofUser("u"), { env: { TOKEN_REVIEW: "all" } });
    const asked: (() => void)[] = [];
    bed.api.onCreate = () => new Promise(resolve => asked.push(() => resolve({ status: { authenticated: false } })));
    const answers = Array.from({ length: 200 }, (_, i) => get({ authorization: `Bearer made-up-${i}` }));
    let served = 0;
    for (const answer of answers) void answer.then(() => served++);
    // All but those being looked at are served at once.
    while (served < 200 - 64) await new Promise(resolve => setTimeout(resolve, 2));
    expect(asked).toHaveLength(64);
    for (const answer of asked) answer();
    expect((await Promise.all(answers)).every(({ status }) => status === 200)).toBe(true);
  });

  it("is not asked of the API server for tokens that the cluster has not made", async () => {
    await start(ofUser("u"));
    const posted: object[] = [];
    bed.api.onCreate = (_path, object) => posted.push(object);
    const token = new UnsecuredJWT({ iss: "https://accounts.example.com" }).encode();
    expect((await get({ authorization: `Bearer ${token}` })).status).toBe(200);
    expect((await get({ authorization: "Bearer opaque" })).status).toBe(200);
    expect(posted).toEqual([]);
  });
});

describe("what an answer tells", () => {
  it("is the gateway's word, not the app's", async () => {
    await start(ofGroup("system:unauthenticated"));
    const pod = await bed.pod((_req, res) => {
      res.setHeader("X-Kubernetes-PF-FlowSchema-UID", "forged");
      res.setHeader("X-Kubernetes-PF-PriorityLevel-UID", "forged");
      res.end();
    });
    bed.revision("other-00001");
    bed.route("other", [{ revisionName: "other-00001", percent: 100 }]);
    bed.endpoint("other-00001", pod);
    const ask = (): Promise<Answer> => get({ host: "other.default.example.com" });
    while ((await ask()).status !== 200) await new Promise(resolve => setTimeout(resolve, 2));
    expect((await ask()).headers).toMatchObject({
      "x-kubernetes-pf-flowschema-uid": "uid-known",
      "x-kubernetes-pf-prioritylevel-uid": "uid-known",
      "x-fairway-flowschema": "known",
      "x-fairway-prioritylevel": "known",
    });
  });
});
