// Where mini-batches come from: fresh samples of a task, a given batch, windows of a sequence; and steps on V alone.
// Each source answers begin(batchSize, step) and draw(i, …), see engine.mjs. What is random in a step depends on (seed, step) alone.
import { differentiate, tokenBits } from "./engine.mjs";
import { median } from "./geometry.mjs";
import { Generator, seedState } from "./numpy.mjs";
import { closedCumulative, drawAndWeigh, fillWords, tokenSampler, toUnit } from "./streams.mjs";

/** The key of a step: a word of the stream that the seed chooses. */
export function stepKey(seed, step) {
  const key = new Uint32Array(2);
  fillWords(seedState(seed, 2), step, key, 1);
  return key;
}

// The first entry of cumulative[begin …] that exceeds u.
function choose(cumulative, begin, u) {
  let row = begin;
  while (u >= cumulative[row]) row++;
  return row - begin;
}

// Distributions in columns of `size` entries, one column after the other, as cumulative sums.
function columnsCumulative(values, size) {
  const out = new Float64Array(values.length);
  for (let begin = 0; begin < values.length; begin += size) out.set(closedCumulative(values.subarray(begin, begin + size)), begin);
  return out;
}

/** What decides last token, source and label of a sample, each by one uniform. */
export function labelSampler(task) {
  const { N } = task;
  const cell = (i) => Math.floor(i / (N * N)) * N * N + (i % N) * N + (Math.floor(i / N) % N); // transposed, head by head
  const columnsOfP = Float64Array.from({ length: task.P.length }, (_, i) => task.P[cell(i)]);
  return {
    mu: closedCumulative(task.mu),
    q: columnsCumulative(task.weights, task.sparsity),
    P: columnsCumulative(columnsOfP, N),
  };
}

/** Fresh samples of a task: those that Python's engine takes with the same seed. */
export function freshSource(task, seed) {
  const { N, T, sparsity, positions, owners = new Int32Array(positions.length) } = task;
  const sampler = tokenSampler(task.mu);
  const labels = labelSampler(task);
  const bits = tokenBits(N);
  const mask = (1 << bits) - 1;
  const key = new Uint32Array(2);
  let words = new Uint32Array(0);
  let lasts = new Int32Array(0);
  let B = 0;
  return {
    begin(batchSize, step) {
      B = batchSize;
      if (lasts.length !== B) {
        words = new Uint32Array(8 * B);
        lasts = new Int32Array(B);
      }
      fillWords(stepKey(seed, step), 0, words, 4 * B);
      for (let i = 0; i < B; i++) lasts[i] = choose(labels.mu, 0, toUnit(words, i));
      return lasts.sort();
    },
    draw(i, A, begin, codes, shift, lanes) {
      key[0] = words[2 * (3 * B + i)];
      key[1] = words[2 * (3 * B + i) + 1];
      drawAndWeigh(key, sampler, N, T, codes, shift, A, begin, lanes);
      const entry = this.entry(i);
      const token = (codes[positions[entry]] >>> shift) & mask;
      return choose(labels.P, (owners[entry] * N + token) * N, toUnit(words, 2 * B + i));
    },
    /** Which entry of Q decided sample i: an index into positions and weights. */
    entry(i) {
      const first = lasts[i] * sparsity;
      return first + choose(labels.q, first, toUnit(words, B + i));
    },
  };
}

/** The first samples of a run, with the position that decided each: { context, last, position, label }. */
export function firstSamples(task, seed, count) {
  const { N, T, positions } = task;
  const source = freshSource(task, seed);
  const lasts = source.begin(count, 0);
  return Array.from(lasts, (last, i) => {
    const context = new Uint8Array(T);
    const label = source.draw(i, new Float64Array(N * T), last * T, context, 0, new Float64Array(4 * N));
    return { context, last, position: positions[source.entry(i)], label };
  });
}

function packTokens(tokens, from, N, T, codes, shift, A, begin, lanes) {
  for (let t = 0; t < T; t++) {
    const token = tokens[from + t];
    codes[t] |= token << shift;
    lanes[(t & 3) * N + token] += A[begin + t];
  }
}

/** The whole of a given batch at each step: context (n × T, one sample after the other), last and label (n). */
export function givenSource(batch, N, T) {
  const order = Int32Array.from(batch.last.keys()).sort((i, j) => batch.last[i] - batch.last[j]);
  return {
    begin: () => Int32Array.from(order, (i) => batch.last[i]),
    draw(i, A, begin, codes, shift, lanes) {
      packTokens(batch.context, order[i] * T, N, T, codes, shift, A, begin, lanes);
      return batch.label[order[i]];
    },
  };
}

/** Windows of one sequence: T tokens are the context, the next is the last token, the one after it the label. */
export function windowSource(tokens, N, T, seed) {
  const windows = tokens.length - T - 1;
  if (windows < 1) throw new Error(`the sequence has ${tokens.length} symbols, but at least T + 2 = ${T + 2} are needed`);
  let words = new Uint32Array(0);
  let starts = new Int32Array(0);
  return {
    begin(batchSize, step) {
      if (starts.length !== batchSize) {
        words = new Uint32Array(2 * batchSize);
        starts = new Int32Array(batchSize);
      }
      fillWords(stepKey(seed, step), 0, words, batchSize);
      for (let i = 0; i < batchSize; i++) starts[i] = Math.floor(toUnit(words, i) * windows);
      starts.sort((i, j) => tokens[i + T] - tokens[j + T]);
      return Int32Array.from(starts, (start) => tokens[start + T]);
    },
    draw(i, A, begin, codes, shift, lanes) {
      packTokens(tokens, starts[i], N, T, codes, shift, A, begin, lanes);
      return tokens[starts[i] + T + 1];
    },
  };
}

/**
 * The columns of a frozen A as their few active positions, where all others have weight 0; null if some do not.
 * Steps on V alone then need only the tokens at active positions, and do not depend on T.
 */
export function freeze(task, A) {
  const { N, T, sparsity, positions } = task;
  const active = [];
  for (let k = 0; k < N; k++) {
    const column = A.subarray(k * T, (k + 1) * T);
    if (median(column) !== 0) return null;
    active.push([...column.keys()].filter((t) => column[t] !== 0));
  }
  return {
    width: Math.max(1, ...active.map((list) => list.length)),
    weights: active.map((list, k) => list.map((t) => A[k * T + t])),
    source: Int32Array.from({ length: sparsity * N }, (_, i) => active[Math.floor(i / sparsity)].indexOf(positions[i])),
  };
}

/** The mean loss of a mini-batch and its gradient in V (into space.gV), where A is frozen: Python's numbers with the same seed. */
export function frozenGradient(task, frozen, seed, batchSize, step, V, space) {
  const { N, sparsity } = task;
  const sampler = labelSampler(task);
  const key = stepKey(seed, step);
  const rng = new Generator((BigInt(key[1]) << 32n) | BigInt(key[0]));
  const draw = (count) => Float64Array.from({ length: count }, () => rng.random());
  const lasts = draw(batchSize).map((u) => choose(sampler.mu, 0, u));
  const sources = draw(batchSize);
  const labels = draw(batchSize);
  const tokens = draw(batchSize * (frozen.width + 1));
  space.gV.fill(0);
  let loss = 0;
  for (let i = 0; i < batchSize; i++) {
    const k = lasts[i];
    const u = tokens.subarray(i * (frozen.width + 1), (i + 1) * (frozen.width + 1));
    const weights = frozen.weights[k];
    space.mass.fill(0);
    for (let j = 0; j < weights.length; j++) space.mass[choose(sampler.mu, 0, u[j])] += weights[j];
    const slot = choose(sampler.q, k * sparsity, sources[i]);
    const at = frozen.source[k * sparsity + slot];
    const token = choose(sampler.mu, 0, at >= 0 ? u[at] : u[frozen.width]);
    const label = choose(sampler.P, token * N, labels[i]);
    loss += differentiate(V, space.mass, label, N, space.residual, space.scores, 0, space.gV);
  }
  for (let i = 0; i < space.gV.length; i++) space.gV[i] /= batchSize;
  return loss / batchSize;
}
