/**
 * The hash that sends a flow to its hand of queues.
 *
 * A flow is a FlowSchema's name and the request's distinguisher (user, namespace or nothing). Its hash is the first
 * eight bytes, little-endian, of SHA-256 over `name`, a zero byte, `distinguisher` (both as UTF-8): the same number as
 * k8s.io/apiserver's. It is held as two unsigned 32-bit halves, since JavaScript numbers are exact to 53 bits only.
 */
export interface FlowHash {
  /** The upper 32 bits, unsigned. */
  readonly high: number;
  /** The lower 32 bits, unsigned. */
  readonly low: number;
}

// Fractional parts of the cube roots of the first 64 primes (FIPS 180-4, section 4.2.2).
const ROUND_CONSTANTS = Uint32Array.of(
  0x428a2f98,
  0x71374491,
  0xb5c0fbcf,
  0xe9b5dba5,
  0x3956c25b,
  0x59f111f1,
  0x923f82a4,
  0xab1c5ed5,
  0xd807aa98,
  0x12835b01,
  0x243185be,
  0x550c7dc3,
  0x72be5d74,
  0x80deb1fe,
  0x9bdc06a7,
  0xc19bf174,
  0xe49b69c1,
  0xefbe4786,
  0x0fc19dc6,
  0x240ca1cc,
  0x2de92c6f,
  0x4a7484aa,
  0x5cb0a9dc,
  0x76f988da,
  0x983e5152,
  0xa831c66d,
  0xb00327c8,
  0xbf597fc7,
  0xc6e00bf3,
  0xd5a79147,
  0x06ca6351,
  0x14292967,
  0x27b70a85,
  0x2e1b2138,
  0x4d2c6dfc,
  0x53380d13,
  0x650a7354,
  0x766a0abb,
  0x81c2c92e,
  0x92722c85,
  0xa2bfe8a1,
  0xa81a664b,
  0xc24b8b70,
  0xc76c51a3,
  0xd192e819,
  0xd6990624,
  0xf40e3585,
  0x106aa070,
  0x19a4c116,
  0x1e376c08,
  0x2748774c,
  0x34b0bcb5,
  0x391c0cb3,
  0x4ed8aa4a,
  0x5b9cca4f,
  0x682e6ff3,
  0x748f82ee,
  0x78a5636f,
  0x84c87814,
  0x8cc70208,
  0x90befffa,
  0xa4506ceb,
  0xbef9a3f7,
  0xc67178f2,
);

const BLOCK_BYTES = 64;
const encoder = new TextEncoder();

function compress(state: Uint32Array, block: DataView, offset: number, schedule: Uint32Array): void {
  for (let t = 0; t < 16; t++) schedule[t] = block.getUint32(offset + 4 * t);
  for (let t = 16; t < 64; t++) {
    const w15 = schedule[t - 15]!;
    const w2 = schedule[t - 2]!;
    const sigma0 = ((w15 >>> 7) | (w15 << 25)) ^ ((w15 >>> 18) | (w15 << 14)) ^ (w15 >>> 3);
    const sigma1 = ((w2 >>> 17) | (w2 << 15)) ^ ((w2 >>> 19) | (w2 << 13)) ^ (w2 >>> 10);
    schedule[t] = (schedule[t - 16]! + sigma0 + schedule[t - 7]! + sigma1) | 0;
  }
  let a = state[0]!;
  let b = state[1]!;
  let c = state[2]!;
  let d = state[3]!;
  let e = state[4]!;
  let f = state[5]!;
  let g = state[6]!;
  let h = state[7]!;
  for (let t = 0; t < 64; t++) {
    const sum1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const choose = (e & f) ^ (~e & g);
    const t1 = (h + sum1 + choose + ROUND_CONSTANTS[t]! + schedule[t]!) | 0;
    const sum0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const majority = (a & b) ^ (a & c) ^ (b & c);
    const t2 = (sum0 + majority) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  state[0]! += a;
  state[1]! += b;
  state[2]! += c;
  state[3]! += d;
  state[4]! += e;
  state[5]! += f;
  state[6]! += g;
  state[7]! += h;
}

/** The first two 32-bit words of SHA-256 (big-endian words, as FIPS 180-4 writes them). */
function sha256Head(message: Uint8Array): readonly [number, number] {
  const padded = new Uint8Array(Math.ceil((message.length + 9) / BLOCK_BYTES) * BLOCK_BYTES);
  padded.set(message);
  padded[message.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(message.length / 0x2000_0000));
  view.setUint32(padded.length - 4, (message.length << 3) >>> 0);
  const state = Uint32Array.of(
    0x6a09e667,
    0xbb67ae85,
    0x3c6ef372,
    0xa54ff53a,
    0x510e527f,
    0x9b05688c,
    0x1f83d9ab,
    0x5be0cd19,
  );
  const schedule = new Uint32Array(64);
  for (let offset = 0; offset < padded.length; offset += BLOCK_BYTES) compress(state, view, offset, schedule);
  return [state[0]!, state[1]!];
}

function swapBytes(word: number): number {
  return ((word >>> 24) | ((word >>> 8) & 0x0000_ff00) | ((word << 8) & 0x00ff_0000) | (word << 24)) >>> 0;
}

/** The hash of the flow `(schemaName, distinguisher)`. About 2 µs: keep it where the same flow comes often. */
export function hashFlow(schemaName: string, distinguisher: string): FlowHash {
  const [first, second] = sha256Head(encoder.encode(`${schemaName}\0${distinguisher}`));
  return { high: swapBytes(second), low: swapBytes(first) };
}
