// Two heads: a task whose last token chooses a position and, with it, one of two tables; a model with a V and an A for each head.
// V holds the matrices one after the other. A holds a column for each last token, with the T positions of head 0, then those of head 1.
import { preconditionV } from "./engine.mjs";
import { centred, dot, innerV, trivialV } from "./geometry.mjs";
import { Generator } from "./numpy.mjs";

export const HEAD_MEASURES = ["sigma_1", "sigma_2", "overlap", "function"];

/** The matrix of head h among several. */
export const headOf = (V, h, N) => V.subarray(h * N * N, (h + 1) * N * N);

// ---------------------------------------------------------------------------------------------------- the factorisation

const grid = (H, cell) => Array.from({ length: H }, (_, h) => Array.from({ length: H }, (_, g) => cell(h, g)));

/** The singular values, descending, of Σ_h left_h ⊗ right_h for two heads, from the inner products of the factors. */
export function singularValues(left, right) {
  const product = grid(2, (h, g) => left[h][0] * right[0][g] + left[h][1] * right[1][g]);
  const half = (product[0][0] + product[1][1]) / 2;
  const det = (left[0][0] * left[1][1] - left[0][1] * left[1][0]) * (right[0][0] * right[1][1] - right[0][1] * right[1][0]);
  const first = half + Math.sqrt(Math.max(half * half - det, 0));
  return [Math.sqrt(first), first > 0 ? Math.sqrt(Math.max(det / first, 0)) : 0];
}

/** What a task with two heads has beside that of one: the inner products of its factors, its singular values, K_P and K_Q of the first. */
export function headConstants({ P, mu, weights, owners, sparsity, N, T }) {
  const tables = [0, 1].map((h) => centred(headOf(P, h, N), mu));
  const right = grid(2, (h, g) => innerV(tables[h], tables[g], mu));
  const left = grid(2, (h, g) =>
    h === g ? weights.reduce((sum, w, j) => sum + (owners[j] === h ? w * w * mu[Math.floor(j / sparsity)] : 0), 0) : 0,
  );
  const singular = singularValues(left, right);
  const ratio = Math.sqrt((right[0][0] + right[1][1]) / (left[0][0] + left[1][1]));
  return { tables, left, right, singular, K_P: singular[0] * ratio, K_Q: singular[0] / ratio, squareQ: left[0][0] + left[1][1], T };
}

/** σ_1 and σ_2 of the function, the smaller overlap of a head with the true one it is closest to, ‖F − M‖ and the population loss. */
export function measureHeads(task, V, A) {
  const { N, T, mu, positions, weights, owners, sparsity, constants } = task;
  const own = [0, 1].map((h) => centred(headOf(V, h, N), mu));
  const right = grid(2, (h, g) => innerV(own[h], own[g], mu));
  const left = grid(2, (h, g) => mu.reduce((sum, share, k) => sum + share * product(A, (2 * k + h) * T, (2 * k + g) * T, T), 0));
  const across = grid(2, () => 0); // ⟨A_h, Q_g⟩
  positions.forEach((t, j) => {
    const k = Math.floor(j / sparsity);
    for (let h = 0; h < 2; h++) across[h][owners[j]] += mu[k] * weights[j] * A[(2 * k + h) * T + t];
  });
  const tables = grid(2, (h, g) => innerV(own[h], constants.tables[g], mu));
  const sum = (cell) => cell(0, 0) + cell(0, 1) + cell(1, 0) + cell(1, 1);
  const truth = sum((h, g) => constants.left[h][g] * constants.right[h][g]);
  const square = sum((h, g) => left[h][g] * right[h][g]) - 2 * sum((h, g) => across[h][g] * tables[h][g]) + truth;
  const size = (h, g) => Math.sqrt(left[h][h] * right[h][h] * constants.left[g][g] * constants.right[g][g]) || 1;
  const cosine = grid(2, (h, g) => (across[h][g] * tables[h][g]) / size(h, g));
  const overlap = Math.max(Math.min(cosine[0][0], cosine[1][1]), Math.min(cosine[0][1], cosine[1][0]));
  const [sigma_1, sigma_2] = singularValues(left, right);
  return { loss: 0.5 * (1 - dot(mu, mu) - truth + square), sigma_1, sigma_2, overlap, function: Math.sqrt(Math.max(square, 0)) };
}

function product(A, i, j, T) {
  let sum = 0;
  for (let t = 0; t < T; t++) sum += A[i + t] * A[j + t];
  return sum;
}

// ---------------------------------------------------------------------------------------------------- start, gradient, step

/** A small random V in each head, of ‖V_h − μ1ᵀ‖_μ = `size`, as Python's random_start draws it. */
export function headStart(mu, seed, size = 0.01) {
  const N = mu.length;
  const rng = new Generator(seed);
  const out = new Float64Array(2 * N * N);
  for (let h = 0; h < 2; h++) {
    const G = Float64Array.from({ length: N * N }, () => rng.normal());
    preconditionV(
      G.map((g, i) => g * mu[i % N]),
      mu,
      "mu",
    ).forEach((g, i) => (G[i] = g));
    const norm = Math.sqrt(innerV(G, G, mu));
    const start = trivialV(mu);
    G.forEach((g, i) => (out[h * N * N + i] = start[i] + (size * g) / norm));
  }
  return out;
}

/** The mean loss of a mini-batch; gradients of all heads are left in space.gV and space.gA. */
export function headGradient(source, batchSize, step, V, A, N, T, space) {
  const { codes, residual, gV, gA, lanes, mass, scores } = space;
  const lasts = source.begin(batchSize, step);
  gV.fill(0);
  gA.fill(0);
  let loss = 0;
  for (let i = 0; i < batchSize; i++) {
    const begin = lasts[i] * 2 * T;
    codes.fill(0);
    const label = source.draw(i, A, begin, codes, 0, lanes);
    mass.fill(0);
    for (let t = 0; t < T; t++) {
      mass[codes[t]] += A[begin + t];
      mass[N + codes[t]] += A[begin + T + t];
    }
    for (let n = 0; n < N; n++) {
      let r = n === label ? -1 : 0;
      for (let m = 0; m < 2 * N; m++) r += V[(m < N ? 0 : N * N) + n * N + (m % N)] * mass[m];
      residual[n] = r;
      loss += (0.5 * r * r) / batchSize;
    }
    scores.fill(0);
    for (let m = 0; m < 2 * N; m++) {
      for (let n = 0; n < N; n++) {
        const at = (m < N ? 0 : N * N) + n * N + (m % N);
        scores[m] += (residual[n] * V[at]) / batchSize;
        gV[at] += (residual[n] * mass[m]) / batchSize;
      }
    }
    for (let t = 0; t < T; t++) {
      gA[begin + t] += scores[codes[t]];
      gA[begin + T + t] += scores[N + codes[t]];
    }
  }
  return loss;
}

/** Memory for `headGradient`. */
export function headSpace(N, T) {
  const floats = (n) => new Float64Array(n);
  return {
    codes: new Uint8Array(T),
    lanes: floats(4 * N),
    mass: floats(2 * N),
    residual: floats(N),
    scores: floats(2 * N),
    gV: floats(2 * N * N),
    gA: floats(2 * N * T),
  };
}

// ---------------------------------------------------------------------------------------------------- the gauge

/** Give each head the size ‖V_h − μ1ᵀ‖_μ = `size`, and its attention the rest; the function stays. Small heads are left alone. */
export function holdSizes(V, A, mu, size, least = 0.1) {
  const N = mu.length;
  const T = A.length / N / 2;
  const factors = [0, 1].map((h) => {
    const norm = Math.sqrt(innerV(centred(headOf(V, h, N), mu), centred(headOf(V, h, N), mu), mu));
    return norm < least ? 1 : norm / size;
  });
  mix(V, A, mu, [
    [1 / factors[0], 0],
    [0, 1 / factors[1]],
  ]);
  for (let k = 0; k < N; k++) closeColumn(A, 2 * k * T, 2 * T);
}

// Ṽ_h ← Σ_g weights[h][g] Ṽ_g and A by the inverse transpose, so that Σ_h a_h ⊗ Ṽ_h stays; in place.
function mix(V, A, mu, [[a, b], [c, d]]) {
  const N = mu.length;
  const T = A.length / N / 2;
  const det = a * d - b * c;
  for (let i = 0; i < N * N; i++) {
    const m = mu[Math.floor(i / N)];
    const [x, y] = [V[i] - m, V[N * N + i] - m];
    [V[i], V[N * N + i]] = [m + a * x + b * y, m + c * x + d * y];
  }
  for (let k = 0; k < N; k++) {
    for (let t = 2 * k * T; t < (2 * k + 1) * T; t++) {
      const [x, y] = [A[t], A[t + T]];
      [A[t], A[t + T]] = [(d * x - c * y) / det, (a * y - b * x) / det];
    }
  }
}

function closeColumn(A, begin, length) {
  let sum = 0;
  for (let t = begin; t < begin + length; t++) sum += A[t];
  for (let t = begin; t < begin + length; t++) A[t] += (1 - sum) / length;
}

/**
 * Turn the heads so that each position belongs to one of them, as far as that can be; in place. The pairs of weights (head 0, head 1) lie
 * on two lines through 0. Where they are scaled to have the same spread in all directions, the lines are at right angles: the angle that
 * fits best is found by trying many, and the lines become the axes.
 */
export function turnHeads(V, A, mu, size) {
  const [xx, xy, yy] = [(x) => x * x, (x, y) => x * y, (_, y) => y * y].map((term) =>
    pairsOf(A, mu).reduce((sum, [x, y]) => sum + term(x, y), 0),
  );
  const first = Math.sqrt(xx);
  const along = xy / first;
  mix(V, A, mu, [
    [first, along],
    [0, Math.sqrt(Math.max(yy - along * along, 1e-12))],
  ]);
  const pairs = pairsOf(A, mu);
  const far = Math.max(...pairs.map(([x, y]) => Math.hypot(x, y)));
  const bright = pairs.filter(([x, y]) => Math.hypot(x, y) > far / 4);
  const turned = (angle) =>
    bright.map(([x, y]) => [x * Math.cos(angle) + y * Math.sin(angle), y * Math.cos(angle) - x * Math.sin(angle)]);
  const misfit = (angle) => turned(angle).reduce((sum, [x, y]) => sum + Math.min(x * x, y * y), 0);
  const angles = Array.from({ length: 180 }, (_, i) => (i * Math.PI) / 360);
  const best = angles.reduce((least, angle) => (misfit(angle) < misfit(least) ? angle : least));
  // Attention is positive: each line points where most of it does.
  const sign = (which) => Math.sign(turned(best).reduce((sum, pair) => sum + pair[which] ** 3, 0)) || 1;
  mix(V, A, mu, [
    [sign(0) * Math.cos(best), sign(0) * Math.sin(best)],
    [-sign(1) * Math.sin(best), sign(1) * Math.cos(best)],
  ]);
  holdSizes(V, A, mu, size, 0);
}

function pairsOf(A, mu) {
  const T = A.length / mu.length / 2;
  return Array.from(mu, (share, k) =>
    Array.from({ length: T }, (_, t) => [A[2 * k * T + t], A[(2 * k + 1) * T + t]].map((a) => a * Math.sqrt(share))),
  ).flat();
}
