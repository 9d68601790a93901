/** Uniform in [0, 1). */
export type Random = () => number;

/** Four 32-bit words from a text: FNV-1a, stirred anew for each word. */
function hashWords(text: string): [number, number, number, number] {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  const word = (salt: number): number => {
    let h = hash ^ Math.imul(salt, 0x9e3779b1);
    h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
    h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
    return h ^ (h >>> 16);
  };
  return [word(1), word(2), word(3), word(4)];
}

/** Numbers drawn before the first one counts: seeds that differ little give streams that differ from the start. */
const WARM_UP = 16;

/**
 * A stream of numbers fixed by seed and name. Each use of chance has its own stream, so a policy that starts more pods meets
 * the same arrivals and service times as another. The generator is sfc32 (Doty-Humphrey, PractRand).
 */
export function seededRandom(seed: number, stream: string): Random {
  let [a, b, c, counter] = hashWords(`${seed}/${stream}`);
  const next = (): number => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 2 ** 32;
  };
  for (let i = 0; i < WARM_UP; i++) next();
  return next;
}
