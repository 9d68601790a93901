import { BlockList } from "node:net";
import { describe, expect, it } from "vitest";
import type { Exchange } from "../../shared/http/exchange.ts";
import { passedFields, requestFields } from "./request-fields.ts";

const proxies = new BlockList();
proxies.addSubnet("10.0.0.0", 8, "ipv4");
proxies.addSubnet("fd00::", 8, "ipv6");

function fields(
  raw: string[],
  more: {
    trusted?: BlockList;
    authenticators?: BlockList;
    remoteAddress?: string;
    toHttp2?: boolean;
    tls?: Exchange["tls"];
  } = {},
) {
  const exchange = {
    rawHeaders: raw,
    remoteAddress: more.remoteAddress ?? "10.1.2.3",
    authority: "a.example.com",
    tls: more.tls,
  } as unknown as Exchange;
  const flat = requestFields(
    exchange,
    { clients: more.trusted, identities: more.authenticators },
    more.toHttp2 ?? false,
  );
  const pairs: [string, string][] = [];
  for (let i = 0; i < flat.length; i += 2) pairs.push([flat[i]!, flat[i + 1]!]);
  return pairs;
}
const only = (pairs: [string, string][], ...names: string[]) =>
  Object.fromEntries(pairs.filter(([name]) => names.includes(name)));

describe("requestFields", () => {
  it("says who the client is, and marks the request", () => {
    expect(fields(["Host", "a.example.com", "X-A", "1"])).toEqual([
      ["X-A", "1"],
      ["X-Forwarded-For", "10.1.2.3"],
      ["X-Forwarded-Host", "a.example.com"],
      ["X-Forwarded-Proto", "http"],
      ["Forwarded", "for=10.1.2.3;host=a.example.com;proto=http"],
      ["K-Proxy-Request", "gateway"],
    ]);
  });

  it("writes an IPv6 client bare in X-Forwarded-For and as a node in Forwarded", () => {
    expect(only(fields([], { remoteAddress: "2001:db8::1" }), "X-Forwarded-For", "Forwarded")).toEqual({
      "X-Forwarded-For": "2001:db8::1",
      Forwarded: 'for="[2001:db8::1]";host=a.example.com;proto=http',
    });
  });

  const claims = [
    ...["X-Forwarded-For", "203.0.113.7"],
    ...["x-forwarded-for", "198.51.100.2"],
    ...["X-Forwarded-Proto", "https"],
    ...["X-Forwarded-Host", "public.example.com"],
    ...["Forwarded", "for=203.0.113.7;proto=https"],
    ...["X-Real-IP", "203.0.113.7"],
  ];

  it("drops what a client claims about itself", () => {
    const pairs = fields(claims);
    expect(only(pairs, "X-Forwarded-For", "X-Forwarded-Proto", "X-Real-IP")).toEqual({
      "X-Forwarded-For": "10.1.2.3",
      "X-Forwarded-Proto": "http",
    });
    expect(JSON.stringify(pairs)).not.toContain("203.0.113.7");
  });

  it("says whether it came by TLS, whatever the client claims", () => {
    const said = (tls: Exchange["tls"], claim: string) =>
      only(
        fields(["X-Forwarded-Proto", claim, "Forwarded", `proto=${claim}`], { tls }),
        "X-Forwarded-Proto",
        "Forwarded",
      );
    expect(said({ certificate: undefined }, "http")).toEqual({
      "X-Forwarded-Proto": "https",
      Forwarded: "for=10.1.2.3;host=a.example.com;proto=https",
    });
    expect(said(undefined, "https")).toMatchObject({ "X-Forwarded-Proto": "http" });
  });

  it("extends what a trusted proxy says", () => {
    expect(Object.fromEntries(fields(claims, { trusted: proxies }))).toMatchObject({
      "X-Forwarded-For": "203.0.113.7, 198.51.100.2, 10.1.2.3",
      "X-Forwarded-Proto": "https",
      "X-Forwarded-Host": "public.example.com",
      Forwarded: "for=203.0.113.7;proto=https, for=10.1.2.3;host=public.example.com;proto=https",
      "X-Real-IP": "203.0.113.7",
    });
  });

  it("drops the system's own fields, whatever their case", () => {
    const raw = [
      "K-Proxy-Request",
      "activator",
      "k-network-probe",
      "queue",
      "KNATIVE-SERVING-REVISION",
      "x",
      "K-Other",
      "1",
    ];
    expect(fields(raw).filter(([name]) => /^kn?-|^k-/i.test(name))).toEqual([
      ["K-Other", "1"],
      ["K-Proxy-Request", "gateway"],
    ]);
  });

  it("ends hop-by-hop fields here, those that Connection names as well", () => {
    const raw = [
      "Connection",
      "keep-alive, x-hop",
      "X-Hop",
      "1",
      "Upgrade",
      "h2c",
      "Transfer-Encoding",
      "chunked",
      "Expect",
      "100-continue",
    ];
    expect(fields(raw).map(([name]) => name)).toEqual([
      "X-Forwarded-For",
      "X-Forwarded-Host",
      "X-Forwarded-Proto",
      "Forwarded",
      "K-Proxy-Request",
    ]);
  });

  it("does not let Connection take its own fields away", () => {
    const raw = ["Connection", "X-Forwarded-For, K-Proxy-Request"];
    expect(fields(raw).map(([name]) => name)).toContain("X-Forwarded-For");
    expect(fields(raw).map(([name]) => name)).toContain("K-Proxy-Request");
  });

  it("joins cookies that HTTP/2 split, and keeps TE: trailers on the way to HTTP/2", () => {
    const raw = ["cookie", "a=1", "cookie", "b=2", "te", "trailers"];
    expect(only(fields(raw), "Cookie", "TE")).toEqual({ Cookie: "a=1; b=2" });
    expect(only(fields(raw, { toHttp2: true }), "Cookie", "TE")).toEqual({ Cookie: "a=1; b=2", TE: "trailers" });
  });

  it("quotes a host that is no token", () => {
    const exchange = {
      rawHeaders: [],
      remoteAddress: "1.2.3.4",
      authority: "a.example.com:8080",
    } as unknown as Exchange;
    expect(requestFields(exchange, { clients: undefined, identities: undefined }, false)).toContain(
      'for=1.2.3.4;host="a.example.com:8080";proto=http',
    );
  });

  it("lets only those who authenticate clients say who they are, and no client what gateways tell each other", () => {
    const raw = [
      "X-Remote-User",
      "u",
      "X-Remote-Group",
      "g",
      "X-Remote-Extra-A",
      "1",
      "K-Gateway-Passed",
      "{}",
      "X-A",
      "1",
    ];
    const names = (more: Parameters<typeof fields>[1] = {}): string[] =>
      fields(raw, more).flatMap(([name]) => (/^(x-remote|k-gateway|x-a$)/i.test(name) ? [name] : []));
    expect(names()).toEqual(["X-A"]);
    expect(names({ trusted: proxies })).toEqual(["X-A"]);
    expect(names({ authenticators: proxies })).toEqual(["X-Remote-User", "X-Remote-Group", "X-Remote-Extra-A", "X-A"]);
    expect(names({ authenticators: proxies, remoteAddress: "192.168.0.1" })).toEqual(["X-A"]);
  });
});

describe("passedFields", () => {
  it("leaves as it is what another gateway has written, but for what is of the connection between the two", () => {
    const written = ["X-Forwarded-For", "6.6.6.6", "X-Remote-User", "u", "K-Proxy-Request", "gateway", "Cookie", "a=1"];
    const raw = [
      "Host",
      "h",
      "Connection",
      "x-hop",
      "X-Hop",
      "1",
      ...written,
      "K-Gateway-Passed",
      "{}",
      "TE",
      "trailers",
    ];
    expect(passedFields({ rawHeaders: raw }, false)).toEqual(written);
    expect(passedFields({ rawHeaders: raw }, true)).toEqual([...written, "TE", "trailers"]);
  });
});
