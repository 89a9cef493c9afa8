// Random words by counting, and tokens of a given distribution from 16 of their bits: the streams of Python's engine, bit for bit.
// Word i of a stream is a hash (splitmix64) of the stream's key and i. A word of 64 bits is two numbers of 32, low half first;
// so is a key. Arithmetic on 64 bits is written out in 32-bit integers, because BigInt would be a hundred times slower.

const FRACTIONS = 2n ** 40n; // where in a stream the fractions begin that settle ties
const GOLDEN = 0x9e3779b97f4a7c15n;
const GOLDEN_LOW = 0x7f4a7c15;
const GOLDEN_HIGH = 0x9e3779b9;
const UNKNOWN = 255;
const TABLE_BITS = 12;

/** Words start, start + 1, … of the stream `key` = [low, high] into `words` (Uint32Array): low half of word i at 2i, high half at 2i + 1. */
export function fillWords(key, start, words, count) {
  const first = start === 0 ? 0n : (BigInt(start) * GOLDEN) & 0xffffffffffffffffn;
  let sumLow = ((key[0] >>> 0) + Number(first & 0xffffffffn)) | 0;
  const carry = (key[0] >>> 0) + Number(first & 0xffffffffn) > 0xffffffff ? 1 : 0;
  let sumHigh = (key[1] + Number(first >> 32n) + carry) | 0;
  for (let i = 0; i < count; i++) {
    // z ^= z >>> 30; z *= 0xbf58476d1ce4e5b9
    let low = sumLow ^ ((sumLow >>> 30) | (sumHigh << 2));
    let high = sumHigh ^ (sumHigh >>> 30);
    let a0 = low & 0xffff;
    let a1 = low >>> 16;
    let p = Math.imul(a0, 0xe5b9);
    let t = (Math.imul(a1, 0xe5b9) + (p >>> 16)) | 0;
    let w = ((t & 0xffff) + Math.imul(a0, 0x1ce4)) | 0;
    let top = (Math.imul(a1, 0x1ce4) + (t >>> 16) + (w >>> 16)) | 0;
    high = (top + Math.imul(low, 0xbf58476d) + Math.imul(high, 0x1ce4e5b9)) | 0;
    low = (w << 16) | (p & 0xffff);
    // z ^= z >>> 27; z *= 0x94d049bb133111eb
    low ^= (low >>> 27) | (high << 5);
    high ^= high >>> 27;
    a0 = low & 0xffff;
    a1 = low >>> 16;
    p = Math.imul(a0, 0x11eb);
    t = (Math.imul(a1, 0x11eb) + (p >>> 16)) | 0;
    w = ((t & 0xffff) + Math.imul(a0, 0x1331)) | 0;
    top = (Math.imul(a1, 0x1331) + (t >>> 16) + (w >>> 16)) | 0;
    high = (top + Math.imul(low, 0x94d049bb) + Math.imul(high, 0x133111eb)) | 0;
    low = (w << 16) | (p & 0xffff);
    // z ^= z >>> 31
    words[2 * i] = low ^ ((low >>> 31) | (high << 1));
    words[2 * i + 1] = high ^ (high >>> 31);
    const before = sumLow >>> 0;
    sumLow = (sumLow + GOLDEN_LOW) | 0;
    sumHigh = (sumHigh + GOLDEN_HIGH + (sumLow >>> 0 < before ? 1 : 0)) | 0;
  }
}

/** A uniform on [0, 1) with 53 bits, from word i. */
export function toUnit(words, i) {
  return (words[2 * i + 1] * 2097152 + (words[2 * i] >>> 11)) / 9007199254740992;
}

/** Cumulative sums of a distribution, with rounding taken out: from the last positive mass on, exactly 1. */
export function closedCumulative(p) {
  const cumulative = new Float64Array(p.length);
  let sum = 0;
  for (let i = 0; i < p.length; i++) cumulative[i] = sum += p[i];
  for (let i = 0; i < p.length; i++) if (cumulative[i] >= sum * (1 - 1e-14)) cumulative[i] = 1;
  return cumulative;
}

/** The distribution μ, ready for `drawAndWeigh`. Tokens are exact: where 16 bits leave it open, 53 more are drawn. */
export function tokenSampler(mu) {
  const N = mu.length;
  const whole = new Int32Array(N - 1);
  const fraction = new Float64Array(N - 1);
  let sum = 0;
  for (let j = 0; j < N - 1; j++) {
    const scaled = (sum += mu[j]) * 65536;
    whole[j] = Math.min(Math.floor(scaled), 65535);
    fraction[j] = scaled - whole[j];
  }
  const shift = 16 - TABLE_BITS;
  const table = new Uint8Array(1 << TABLE_BITS); // the token of every w in a cell, or UNKNOWN if they differ
  for (let cell = 0; cell < table.length; cell++) {
    const through = (cell + 1) << shift;
    let below = 0;
    while (below < N - 1 && whole[below] < cell << shift) below++;
    table[cell] = below < N - 1 && whole[below] < through ? UNKNOWN : below;
  }
  return { whole, fraction, table };
}

function settleTie(key, t, w, sampler) {
  let token = 0;
  while (token < sampler.whole.length && sampler.whole[token] < w) token++;
  if (token === sampler.whole.length || sampler.whole[token] !== w) return token;
  const word = new Uint32Array(2);
  fillWords(key, FRACTIONS + BigInt(t), word, 1);
  const u = toUnit(word, 0);
  while (token < sampler.whole.length && sampler.whole[token] === w && u >= sampler.fraction[token]) token++;
  return token;
}

/**
 * T tokens of the stream `key`, each shifted by `shift` bits and or-ed into `codes`, while their attention a[begin + t] is added to
 * `lanes` (4 × N partial sums of the mass Xa, one for each position modulo 4). Words are made as in `fillWords`, and never stored.
 */
export function drawAndWeigh(key, sampler, N, T, codes, shift, a, begin, lanes) {
  const table = sampler.table;
  const lane1 = N;
  const lane2 = 2 * N;
  const lane3 = 3 * N;
  const whole = T - (T % 4);
  let sumLow = key[0] | 0;
  let sumHigh = key[1] | 0;
  for (let t = 0; t < T; t += 4) {
    let low = sumLow ^ ((sumLow >>> 30) | (sumHigh << 2));
    let high = sumHigh ^ (sumHigh >>> 30);
    let a0 = low & 0xffff;
    let a1 = low >>> 16;
    let p = Math.imul(a0, 0xe5b9);
    let m = (Math.imul(a1, 0xe5b9) + (p >>> 16)) | 0;
    let w = ((m & 0xffff) + Math.imul(a0, 0x1ce4)) | 0;
    high = (Math.imul(a1, 0x1ce4) + (m >>> 16) + (w >>> 16) + Math.imul(low, 0xbf58476d) + Math.imul(high, 0x1ce4e5b9)) | 0;
    low = (w << 16) | (p & 0xffff);
    low ^= (low >>> 27) | (high << 5);
    high ^= high >>> 27;
    a0 = low & 0xffff;
    a1 = low >>> 16;
    p = Math.imul(a0, 0x11eb);
    m = (Math.imul(a1, 0x11eb) + (p >>> 16)) | 0;
    w = ((m & 0xffff) + Math.imul(a0, 0x1331)) | 0;
    high = (Math.imul(a1, 0x1331) + (m >>> 16) + (w >>> 16) + Math.imul(low, 0x94d049bb) + Math.imul(high, 0x133111eb)) | 0;
    low = (w << 16) | (p & 0xffff);
    low ^= (low >>> 31) | (high << 1);
    high ^= high >>> 31;
    sumLow = (sumLow + GOLDEN_LOW) | 0;
    sumHigh = (sumHigh + GOLDEN_HIGH + (sumLow >>> 0 < GOLDEN_LOW ? 1 : 0)) | 0;
    let x0 = table[(low & 0xffff) >>> 4];
    let x1 = table[low >>> 20];
    let x2 = table[(high & 0xffff) >>> 4];
    let x3 = table[high >>> 20];
    if (((x0 | x1 | x2 | x3) & 128) !== 0) {
      if (x0 === UNKNOWN) x0 = settleTie(key, t, low & 0xffff, sampler);
      if (x1 === UNKNOWN) x1 = settleTie(key, t + 1, low >>> 16, sampler);
      if (x2 === UNKNOWN) x2 = settleTie(key, t + 2, high & 0xffff, sampler);
      if (x3 === UNKNOWN) x3 = settleTie(key, t + 3, high >>> 16, sampler);
    }
    if (t === whole) {
      // the last, incomplete four
      if (t < T) {
        codes[t] |= x0 << shift;
        lanes[x0] += a[begin + t];
      }
      if (t + 1 < T) {
        codes[t + 1] |= x1 << shift;
        lanes[lane1 + x1] += a[begin + t + 1];
      }
      if (t + 2 < T) {
        codes[t + 2] |= x2 << shift;
        lanes[lane2 + x2] += a[begin + t + 2];
      }
      break;
    }
    codes[t] |= x0 << shift;
    codes[t + 1] |= x1 << shift;
    codes[t + 2] |= x2 << shift;
    codes[t + 3] |= x3 << shift;
    lanes[x0] += a[begin + t];
    lanes[lane1 + x1] += a[begin + t + 1];
    lanes[lane2 + x2] += a[begin + t + 2];
    lanes[lane3 + x3] += a[begin + t + 3];
  }
}
