import "reflect-metadata"; // has to come before @peculiar/x509
import { randomBytes, webcrypto } from "node:crypto";
import { isIP } from "node:net";
import * as x509 from "@peculiar/x509";

/** A certificate and its private key, as PEM. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

const DAY_MS = 86_400_000;
/** Certificates begin this long before they are made: clocks of the API server and of this process may differ. */
export const BACKDATE_MS = 3_600_000;
const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;

x509.cryptoProvider.set(webcrypto);

/** Makes a new certificate authority (ECDSA P-256) that may only sign leaf certificates. */
export async function createAuthority(nowMs: number, days: number): Promise<KeyPair> {
  const keys = await generateKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    // The name differs from one authority to the next, so that a bundle of two is never ambiguous.
    name: `CN=Fairway webhook CA ${randomBytes(4).toString("hex")}`,
    notBefore: new Date(nowMs - BACKDATE_MS),
    notAfter: new Date(nowMs + days * DAY_MS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: certificate.toString("pem"), key: await exportKey(keys.privateKey) };
}

/** Issues a server certificate for `hosts` (DNS names and IP addresses; the first is the common name). */
export async function issueServerCertificate(
  authority: KeyPair,
  hosts: readonly string[],
  nowMs: number,
  days: number,
): Promise<KeyPair> {
  const keys = await generateKeys();
  const issuer = new x509.X509Certificate(authority.certificate);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: [{ CN: [(hosts[0] ?? "fairway").slice(0, 64)] }],
    issuer: issuer.subjectName,
    notBefore: new Date(nowMs - BACKDATE_MS),
    notAfter: new Date(Math.min(nowMs + days * DAY_MS, issuer.notAfter.getTime())),
    signingAlgorithm: ALGORITHM,
    publicKey: keys.publicKey,
    signingKey: await importKey(authority.key),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(
        hosts.map(value => ({ type: isIP(value) === 0 ? ("dns" as const) : ("ip" as const), value })),
      ),
      await x509.AuthorityKeyIdentifierExtension.create(issuer),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: certificate.toString("pem"), key: await exportKey(keys.privateKey) };
}

/** 16 random octets, positive. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = (bytes[0] ?? 0) & 0x7f;
  return bytes.toString("hex");
}

async function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return await webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
}

async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await webcrypto.subtle.exportKey("pkcs8", key), "PRIVATE KEY");
}

async function importKey(pem: string): Promise<webcrypto.CryptoKey> {
  const der = x509.PemConverter.decodeFirst(pem);
  return await webcrypto.subtle.importKey("pkcs8", der, ALGORITHM, false, ["sign"]);
}
