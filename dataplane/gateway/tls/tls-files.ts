import { createPrivateKey, X509Certificate, type KeyObject } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";

/** Where certificates are: files that may come, change and go while the process runs, as those of a mounted Secret do. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  readonly clientCaFile: string | undefined;
}

/** A certificate with its issuers, and its key; PEM. */
export interface ServerPair {
  readonly certificate: string;
  readonly key: string;
  /** The end of the certificate, milliseconds since the epoch. */
  readonly notAfterMs: number;
}

/** What is in a file is not what it is for; the message names the file and says what is wrong, without any of its content. */
export class TlsFileError extends Error {
  readonly code = "TLS_FILE_INVALID";
  constructor(file: string, problem: string) {
    super(`${file}: ${problem}`);
  }
}

/** Undefined when neither file is there. Throws `TlsFileError`. */
export async function readServerPair({ certFile, keyFile }: TlsFiles): Promise<ServerPair | undefined> {
  const [certificate, key] = await Promise.all([readIfThere(certFile), readIfThere(keyFile)]);
  if (certificate === undefined && key === undefined) return undefined;
  if (certificate === undefined) throw new TlsFileError(certFile, "not there, though its key is");
  if (key === undefined) throw new TlsFileError(keyFile, "not there, though its certificate is");
  const chain = certificatesOf(certFile, certificate);
  const [leaf] = chain;
  if (!leaf.checkPrivateKey(privateKeyOf(keyFile, key)))
    throw new TlsFileError(keyFile, `not the key of the certificate in ${certFile}`);
  try {
    createSecureContext({ cert: pemOf(chain), key });
  } catch (error) {
    // Such as a key that is too short.
    throw new TlsFileError(certFile, `not usable: ${(error as Error).message}`);
  }
  return { certificate: pemOf(chain), key, notAfterMs: leaf.validToDate.getTime() };
}

/** Undefined when there is no such file. Throws `TlsFileError`. */
export async function readClientCa(file: string): Promise<string | undefined> {
  const text = await readIfThere(file);
  if (text === undefined) return undefined;
  const authorities = certificatesOf(file, text);
  for (const authority of authorities) {
    const { subject } = authority;
    if (!authority.ca) throw new TlsFileError(file, `not the certificate of an authority: ${inOneLine(subject)}`);
    // Else nobody's certificate would hold, and nobody would know why.
    if (!authorities.some(issuer => authority.checkIssued(issuer)))
      throw new TlsFileError(file, `no root, and without its issuer: ${inOneLine(subject)}`);
  }
  return pemOf(authorities);
}

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** At least one. */
function certificatesOf(file: string, text: string): [X509Certificate, ...X509Certificate[]] {
  const [first, ...others] = text.match(PEM) ?? [];
  if (first === undefined) throw new TlsFileError(file, "no certificate in it");
  try {
    return [new X509Certificate(first), ...others.map(pem => new X509Certificate(pem))];
  } catch {
    throw new TlsFileError(file, "what looks like a certificate is none");
  }
}

/** One after the other, and nothing else: a file that was put together without line ends is read by OpenSSL up to there only. */
const pemOf = (certificates: readonly X509Certificate[]): string => certificates.map(String).join("\n");

function privateKeyOf(file: string, text: string): KeyObject {
  try {
    return createPrivateKey(text);
  } catch {
    throw new TlsFileError(file, "no private key in it that could be used without a passphrase");
  }
}

const inOneLine = (name: string): string => name.replaceAll("\n", ", ");

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new TlsFileError(file, `cannot be read: ${code ?? String(error)}`);
  }
}
