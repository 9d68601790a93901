import { describe, expect, it } from "vitest";
import { ConfigError, parseConfig } from "./config.ts";

describe("parseConfig", () => {
  it("fills in every default", () => {
    expect(parseConfig({ POD_NAME: "gw-1" })).toMatchObject({
      systemNamespace: "fairway-system",
      podName: "gw-1",
      externalPort: 8080,
      internalPort: 8081,
      adminPort: 9090,
      queueLength: 1000,
      accessLog: false,
      autoscalerUrl: undefined,
    });
  });

  it("reads trusted proxies as addresses and ranges", () => {
    const { trustedProxies } = parseConfig({ TRUSTED_PROXIES: "10.0.0.0/8, 192.168.1.1,fd00::/8" });
    expect(trustedProxies?.check("10.1.2.3", "ipv4")).toBe(true);
    expect(trustedProxies?.check("192.168.1.2", "ipv4")).toBe(false);
    expect(trustedProxies?.check("fd00::1", "ipv6")).toBe(true);
  });

  it("has TLS where its files are named", () => {
    expect(parseConfig({})).toMatchObject({ tls: undefined, clientSystemNames: false });
    const env = { TLS_CERT_FILE: "/tls/tls.crt", TLS_KEY_FILE: "/tls/tls.key", TLS_CLIENT_CA_FILE: "/ca/ca.crt" };
    expect(parseConfig(env).tls).toEqual({
      port: 8443,
      files: { certFile: "/tls/tls.crt", keyFile: "/tls/tls.key", clientCaFile: "/ca/ca.crt" },
      handshakeTimeoutMs: 10_000,
      reloadPeriodMs: 10_000,
    });
  });

  it("believes nobody's word about identities but the cluster's own tokens, unless told otherwise", () => {
    expect(parseConfig({})).toMatchObject({ identityProxies: undefined, oidcIssuers: [], tokenReview: "cluster" });
    const told = parseConfig({
      IDENTITY_PROXIES: "10.0.0.1",
      OIDC_ISSUERS: '[{"issuer":"https://login.example.com","audience":"shop"}]',
      TOKEN_REVIEW: "off",
    });
    expect(told.identityProxies?.check("10.0.0.1")).toBe(true);
    expect(told.oidcIssuers).toEqual([
      { issuer: "https://login.example.com", audience: "shop", usernameClaim: "sub", groupsClaim: "groups" },
    ]);
    expect(told.tokenReview).toBe("off");
  });

  it.each([
    [{ OIDC_ISSUERS: "{" }, /OIDC_ISSUERS: not JSON \(got "{"\)/],
    [{ OIDC_ISSUERS: '[{"issuer":"https://a","audience":""}]' }, /OIDC_ISSUERS at 0\.audience: /],
    [{ OIDC_ISSUERS: '[{"issuer":"https://a","audience":"a","typo":1}]' }, /OIDC_ISSUERS at 0: .*typo/],
    [{ IDENTITY_PROXIES: "everybody" }, /IDENTITY_PROXIES: not an address or range/],
    [{ TOKEN_REVIEW: "some" }, /TOKEN_REVIEW: .*\(got "some"\)/],
    [{ TLS_CERT_FILE: "/a" }, /TLS_KEY_FILE: needed with TLS_CERT_FILE \(got undefined\)/],
    [{ TLS_KEY_FILE: "/a" }, /TLS_CERT_FILE: needed with TLS_KEY_FILE \(got undefined\)/],
    [{ TLS_CLIENT_CA_FILE: "/a" }, /TLS_CERT_FILE: needed with TLS_CLIENT_CA_FILE \(got undefined\)/],
    [{ TLS_CERT_FILE: "", TLS_KEY_FILE: "/a" }, /TLS_CERT_FILE: .*\(got ""\)/],
    [{ TLS_HANDSHAKE_TIMEOUT_MS: "0" }, /TLS_HANDSHAKE_TIMEOUT_MS: .*>=100 \(got "0"\)/],
    [{ TLS_CLIENT_SYSTEM_NAMES: "yes" }, /TLS_CLIENT_SYSTEM_NAMES: .*\(got "yes"\)/],
    [{ EXTERNAL_PORT: "70000" }, /EXTERNAL_PORT: .*<=65535 \(got "70000"\)/],
    [{ ACCESS_LOG: "yes" }, /ACCESS_LOG: .*\(got "yes"\)/],
    [{ TRUSTED_PROXIES: "10.0.0.0/33" }, /TRUSTED_PROXIES: not an address or range \(got "10.0.0.0\/33"\)/],
    [{ FAIRWAY_AUTOSCALER_URL: "nowhere" }, /FAIRWAY_AUTOSCALER_URL: .*\(got "nowhere"\)/],
  ])("names the variable, the rule and the value: %j", (env, message) => {
    expect(() => parseConfig(env)).toThrow(ConfigError);
    expect(() => parseConfig(env)).toThrow(message);
  });
});
