import "reflect-metadata"; // has to come before @peculiar/x509
import { randomBytes, webcrypto } from "node:crypto";
import * as x509 from "@peculiar/x509";

x509.cryptoProvider.set(webcrypto);

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const HOUR_MS = 3_600_000;

/** A certificate and its private key, as PEM. */
export interface TestKeyPair {
  readonly certificate: string;
  readonly key: string;
}

export interface TestSubject {
  readonly commonName?: string;
  readonly organizations?: readonly string[];
  /** What it may be used for; empty: it does not say. */
  readonly usages?: readonly ("clientAuth" | "serverAuth")[];
  readonly notBeforeMs?: number;
  readonly notAfterMs?: number;
}

/** Signs certificates of tests. */
export interface TestAuthority {
  readonly certificate: string;
  /** For localhost and 127.0.0.1. */
  server(subject?: TestSubject): Promise<TestKeyPair>;
  client(subject: TestSubject): Promise<TestKeyPair>;
  /** An authority below this one. */
  authority(name: string): Promise<TestAuthority>;
}

/** A root, whose name differs from one call to the next. */
export async function makeAuthority(name = "test CA"): Promise<TestAuthority> {
  const keys = await makeKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: `CN=${name} ${randomBytes(4).toString("hex")}`,
    notBefore: new Date(Date.now() - HOUR_MS),
    notAfter: new Date(Date.now() + 24 * HOUR_MS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: await extensionsOfAuthority(keys),
  });
  return authorityOf(certificate, keys);
}

function authorityOf(issuer: x509.X509Certificate, issuerKeys: webcrypto.CryptoKeyPair): TestAuthority {
  const issue = async (
    { commonName, organizations = [], ...subject }: TestSubject,
    keys: webcrypto.CryptoKeyPair,
    extensions: readonly x509.Extension[],
  ): Promise<x509.X509Certificate> =>
    x509.X509CertificateGenerator.create({
      serialNumber: serialNumber(),
      subject: [
        ...organizations.map(organization => ({ O: [organization] })),
        ...(commonName === undefined ? [] : [{ CN: [commonName] }]),
      ],
      issuer: issuer.subjectName,
      notBefore: new Date(subject.notBeforeMs ?? Date.now() - HOUR_MS),
      notAfter: new Date(subject.notAfterMs ?? Date.now() + HOUR_MS),
      signingAlgorithm: ALGORITHM,
      publicKey: keys.publicKey,
      signingKey: issuerKeys.privateKey,
      extensions: [...extensions, await x509.AuthorityKeyIdentifierExtension.create(issuer)],
    });
  const leaf = async (subject: TestSubject, names: readonly x509.Extension[]): Promise<TestKeyPair> => {
    const keys = await makeKeys();
    const certificate = await issue(subject, keys, [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      ...(subject.usages?.length === 0
        ? []
        : [new x509.ExtendedKeyUsageExtension((subject.usages ?? []).map(usage => x509.ExtendedKeyUsage[usage]))]),
      ...names,
    ]);
    return { certificate: certificate.toString("pem"), key: await exportKey(keys.privateKey) };
  };
  return {
    certificate: issuer.toString("pem"),
    server: (subject = { commonName: "localhost" }) =>
      leaf({ usages: ["serverAuth"], ...subject }, [
        new x509.SubjectAlternativeNameExtension([
          { type: "dns", value: "localhost" },
          { type: "ip", value: "127.0.0.1" },
        ]),
      ]),
    client: subject => leaf({ usages: ["clientAuth"], ...subject }, []),
    async authority(name) {
      const keys = await makeKeys();
      return authorityOf(await issue({ commonName: name }, keys, await extensionsOfAuthority(keys)), keys);
    },
  };
}

const extensionsOfAuthority = async (keys: webcrypto.CryptoKeyPair): Promise<x509.Extension[]> => [
  new x509.BasicConstraintsExtension(true, undefined, true),
  new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
  await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
];

function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = (bytes[0] ?? 0) & 0x7f;
  return bytes.toString("hex");
}

async function makeKeys(): Promise<webcrypto.CryptoKeyPair> {
  return await webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
}

async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await webcrypto.subtle.exportKey("pkcs8", key), "PRIVATE KEY");
}
