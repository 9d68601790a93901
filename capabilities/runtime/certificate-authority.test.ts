import { createPrivateKey, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { connect, createServer } from "node:tls";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { createAuthority, issueServerCertificate } from "./certificate-authority.ts";

const DAY_MS = 86_400_000;

describe("certificate authority", () => {
  it("issues a certificate that its own CA verifies, for the names and time asked for", async () => {
    const nowMs = Date.now();
    const authority = await createAuthority(nowMs, 3650);
    const serving = await issueServerCertificate(authority, ["a.b.svc", "10.0.0.1"], nowMs, 90);
    const ca = new X509Certificate(authority.certificate);
    const leaf = new X509Certificate(serving.certificate);
    expect(leaf.verify(ca.publicKey)).toBe(true);
    expect(leaf.checkIssued(ca)).toBe(true);
    expect(leaf.checkHost("a.b.svc")).toBe("a.b.svc");
    expect(leaf.checkIP("10.0.0.1")).toBe("10.0.0.1");
    expect(leaf.checkHost("other.svc")).toBeUndefined();
    expect(ca.ca).toBe(true);
    expect(leaf.ca).toBe(false);
    expect(leaf.checkPrivateKey(createPrivateKey(serving.key))).toBe(true);
    expect(Math.round((Date.parse(leaf.validTo) - nowMs) / DAY_MS)).toBe(90);
    expect(Math.round((Date.parse(ca.validTo) - nowMs) / DAY_MS)).toBe(3650);
  });

  it("never issues a certificate that outlives its CA", async () => {
    const nowMs = Date.now();
    const authority = await createAuthority(nowMs, 10);
    const serving = await issueServerCertificate(authority, ["a"], nowMs, 90);
    expect(new X509Certificate(serving.certificate).validTo).toBe(new X509Certificate(authority.certificate).validTo);
  });

  it("is accepted in a real TLS handshake that trusts the CA alone", async () => {
    const authority = await createAuthority(Date.now(), 10);
    const serving = await issueServerCertificate(authority, ["fairway.test"], Date.now(), 5);
    const server = createServer({ cert: serving.certificate, key: serving.key }, socket => socket.end("hello"));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const socket = connect({ port, host: "127.0.0.1", servername: "fairway.test", ca: authority.certificate });
    await once(socket, "secureConnect");
    expect(socket.authorized).toBe(true);
    socket.destroy();
    server.close();
  });
});
