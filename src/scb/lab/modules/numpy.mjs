// NumPy's default generator (SeedSequence and PCG64) with the draws that Task.random makes of it.
// The lab draws the same tasks as Python, number for number: a seed in a link means the same task in `scb train`.
// BigInt is slow, and fast enough: a task takes a few hundred draws.

const MASK32 = 0xffffffffn;
const MASK64 = (1n << 64n) - 1n;
const MASK128 = (1n << 128n) - 1n;
const PCG_MULTIPLIER = 0x2360ed051fc65da44385df649fccf645n;

/** SeedSequence(entropy).generate_state(words, uint32): how NumPy spreads a seed (a nonnegative integer) over a state. */
export function seedState(entropy, words) {
  const POOL = 4;
  const assembled = [];
  let rest = BigInt(entropy);
  do {
    assembled.push(Number(rest & MASK32));
    rest >>= 32n;
  } while (rest > 0n);
  let hash = 0x43b0d7e5;
  const hashed = (value) => {
    let v = (value ^ hash) >>> 0;
    hash = Math.imul(hash, 0x931e8875) >>> 0;
    v = Math.imul(v, hash) >>> 0;
    return (v ^ (v >>> 16)) >>> 0;
  };
  const mixed = (x, y) => {
    const v = (Math.imul(x, 0xca01f9dd) - Math.imul(y, 0x4973f715)) >>> 0;
    return (v ^ (v >>> 16)) >>> 0;
  };
  const pool = [];
  for (let i = 0; i < POOL; i++) pool.push(hashed(i < assembled.length ? assembled[i] : 0));
  for (let from = 0; from < POOL; from++) {
    for (let to = 0; to < POOL; to++) if (from !== to) pool[to] = mixed(pool[to], hashed(pool[from]));
  }
  for (let from = POOL; from < assembled.length; from++) {
    for (let to = 0; to < POOL; to++) pool[to] = mixed(pool[to], hashed(assembled[from]));
  }
  let out = 0x8b51f9dd;
  const state = new Uint32Array(words);
  for (let i = 0; i < words; i++) {
    let v = (pool[i % POOL] ^ out) >>> 0;
    out = Math.imul(out, 0x58f38ded) >>> 0;
    v = Math.imul(v, out) >>> 0;
    state[i] = v ^ (v >>> 16);
  }
  return state;
}

/** SeedSequence(entropy).generate_state(words, uint64), as BigInts. */
export function seedState64(entropy, words) {
  const halves = seedState(entropy, 2 * words);
  return Array.from({ length: words }, (_, i) => (BigInt(halves[2 * i + 1]) << 32n) | BigInt(halves[2 * i]));
}

// The layers of the ziggurats of Marsaglia and Tsang, by their recurrence: each has the area `area`, and the outermost begins at `tail`.
function layers(tail, area, density, inverse) {
  const x = new Float64Array(257);
  x[255] = tail;
  x[256] = area / density(tail); // the base layer, as if it had no tail
  for (let i = 254; i > 0; i--) x[i] = inverse(area / x[i + 1] + density(x[i + 1]));
  return x; // x[0] = 0
}

function ziggurat(tail, area, bits, density, inverse) {
  const x = layers(tail, area, density, inverse);
  const scale = 2 ** bits;
  const width = new Float64Array(256);
  const inside = new Float64Array(256); // below this integer a draw surely lies under the curve
  const height = new Float64Array(256);
  for (let i = 1; i < 256; i++) {
    width[i] = x[i] / scale;
    inside[i] = i > 1 ? (x[i - 1] / x[i]) * scale : 0;
    height[i] = density(x[i]);
  }
  width[0] = x[256] / scale;
  inside[0] = (tail / x[256]) * scale;
  height[0] = 1;
  return { width, inside, height, tail };
}

const EXPONENTIAL = ziggurat(
  7.69711747013104972,
  0.0039496598225815571993,
  53,
  (x) => Math.exp(-x),
  (y) => -Math.log(y),
);
const NORMAL = ziggurat(
  3.6541528853610087963519472518,
  0.004928673233974658,
  52,
  (x) => Math.exp(-0.5 * x * x),
  (y) => Math.sqrt(-2 * Math.log(y)),
);

/** numpy.random.default_rng(seed): the draws of it that the lab needs. */
export class Generator {
  constructor(seed) {
    const [stateHigh, stateLow, streamHigh, streamLow] = seedState64(seed, 4);
    this.increment = ((((streamHigh << 64n) | streamLow) << 1n) | 1n) & MASK128;
    this.state = this.increment;
    this.state = (this.state + ((stateHigh << 64n) | stateLow)) & MASK128;
    this.advance();
    this.half = null; // the upper half of a word, of which the lower was asked for
  }

  advance() {
    this.state = (this.state * PCG_MULTIPLIER + this.increment) & MASK128;
  }

  /** 64 random bits. */
  word() {
    this.advance();
    const folded = ((this.state >> 64n) ^ this.state) & MASK64;
    const turn = this.state >> 122n;
    return ((folded >> turn) | (folded << (64n - turn))) & MASK64;
  }

  /** 32 random bits as a number. */
  word32() {
    if (this.half !== null) {
      const half = this.half;
      this.half = null;
      return half;
    }
    const word = this.word();
    this.half = Number(word >> 32n);
    return Number(word & MASK32);
  }

  /** Uniform on [0, 1). */
  random() {
    return Number(this.word() >> 11n) / 2 ** 53;
  }

  uniform(low, high) {
    return low + (high - low) * this.random();
  }

  /** Uniform among 0 … most, by Lemire's method. */
  below(most) {
    if (most === 0) return 0;
    const count = BigInt(most) + 1n;
    let product = BigInt(this.word32()) * count;
    if ((product & MASK32) < count) {
      const threshold = (MASK32 - BigInt(most)) % count;
      while ((product & MASK32) < threshold) product = BigInt(this.word32()) * count;
    }
    return Number(product >> 32n);
  }

  /** Standard exponential. */
  exponential() {
    const { width, inside, height, tail } = EXPONENTIAL;
    for (;;) {
      const word = this.word() >> 3n;
      const layer = Number(word & 0xffn);
      const r = Number(word >> 8n);
      const x = r * width[layer];
      if (r < inside[layer]) return x;
      if (layer === 0) return tail - Math.log1p(-this.random());
      if ((height[layer - 1] - height[layer]) * this.random() + height[layer] < Math.exp(-x)) return x;
    }
  }

  /** Standard normal. */
  normal() {
    const { width, inside, height, tail } = NORMAL;
    for (;;) {
      const word = this.word();
      const layer = Number(word & 0xffn);
      const sign = ((word >> 8n) & 1n) === 1n ? -1 : 1;
      const r = Number((word >> 9n) & 0xfffffffffffffn);
      const x = r * width[layer];
      if (r < inside[layer]) return sign * x;
      if (layer === 0) {
        for (;;) {
          const beyond = -Math.log1p(-this.random()) / tail;
          const y = -Math.log1p(-this.random());
          if (y + y > beyond * beyond) return ((BigInt(r) >> 8n) & 1n) === 1n ? -(tail + beyond) : tail + beyond;
        }
      }
      if ((height[layer - 1] - height[layer]) * this.random() + height[layer] < Math.exp(-0.5 * x * x)) return sign * x;
    }
  }

  /** A random order of 0 … n − 1. */
  permutation(n) {
    const order = Array.from({ length: n }, (_, i) => i);
    for (let i = n - 1; i >= 1; i--) {
      const mask = 2 ** (32 - Math.clz32(i)) - 1;
      let j = i + 1;
      while (j > i) j = (this.word32() & mask) >>> 0; // NumPy rejects here, where it multiplies in `choice`
      [order[i], order[j]] = [order[j], order[i]];
    }
    return order;
  }

  shuffle(list, first) {
    for (let i = list.length - 1; i >= first; i--) {
      const j = this.below(i);
      [list[i], list[j]] = [list[j], list[i]];
    }
  }

  /** `size` distinct ones of 0 … n − 1: a tail shuffle where they are many, else Floyd's algorithm. */
  choice(n, size) {
    if (n > 10000 && size > Math.floor(n / 50)) {
      const all = Array.from({ length: n }, (_, i) => i);
      this.shuffle(all, Math.max(n - size, 1));
      return all.slice(n - size);
    }
    const chosen = [];
    for (let j = n - size; j < n; j++) {
      const value = this.below(j);
      chosen.push(chosen.includes(value) ? j : value);
    }
    this.shuffle(chosen, 1);
    return chosen;
  }
}
