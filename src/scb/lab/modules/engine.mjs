// One step of Algorithm 1: the gradient of a mini-batch, the preconditioned proximal update, the roundings between stages.
// Pure functions of typed arrays, without DOM. A mini-batch comes from a *source* (sources.mjs):
//   source.begin(batchSize, step)                     → last tokens of its samples, ascending (Int32Array)
//   source.draw(i, a, begin, codes, shift, lanes)     → label of sample i; its tokens are packed into `codes`, their attention added to `lanes`
import { centredSquare, dot, median, normalQuantile } from "./geometry.mjs";

/** How many bits a token takes in a packed byte: 2, 4 or 8, so that samples share a byte and are added in one go. */
export function tokenBits(N) {
  if (N <= 4) return 2;
  return N <= 16 ? 4 : 8;
}

/** Memory for gradients of one size; LANES partial sums of the mass let neighbouring positions not wait for each other. */
export function workspace(N, T) {
  return {
    codes: new Uint8Array(T),
    lanes: new Float64Array(4 * N),
    mass: new Float64Array(N),
    residual: new Float64Array(N),
    scores: new Float64Array(8 * N),
    sums: new Float64Array(256),
    gV: new Float64Array(N * N),
    gA: new Float64Array(N * T),
  };
}

/**
 * The mean loss ½‖e_o − VXa‖² of a mini-batch; its gradients ∇_V l = r(Xa)ᵀ and ∇_{a^(k)} l = 1{last = k}(VX)ᵀr with
 * r = VXa − e_o are left in space.gV and space.gA.
 */
export function batchGradient(source, batchSize, step, V, A, N, T, space) {
  const { codes, lanes, mass, residual, scores, gV, gA } = space;
  const bits = tokenBits(N);
  const together = 8 / bits;
  const lasts = source.begin(batchSize, step);
  const B = lasts.length;
  gV.fill(0);
  gA.fill(0);
  let loss = 0;
  let i = 0;
  while (i < B) {
    const k = lasts[i];
    let j = i; // samples i … j − 1 share their last token, and a byte
    codes.fill(0);
    while (j < B && j < i + together && lasts[j] === k) {
      lanes.fill(0);
      const label = source.draw(j, A, k * T, codes, (j - i) * bits, lanes);
      for (let m = 0; m < N; m++) mass[m] = lanes[m] + lanes[N + m] + (lanes[2 * N + m] + lanes[3 * N + m]);
      loss += differentiate(V, mass, label, N, residual, scores, (j - i) * N, gV);
      j++;
    }
    addScores(codes, scores, j - i, bits, N, gA, k * T, T, space.sums);
    i = j;
  }
  const scale = 1 / B;
  for (let m = 0; m < gV.length; m++) gV[m] *= scale;
  for (let m = 0; m < gA.length; m++) gA[m] *= scale;
  return loss * scale;
}

// r = V·mass − e_o; scores[first + m] = (Vᵀr)_m; gV += r·massᵀ. Returns ½‖r‖².
export function differentiate(V, mass, label, N, residual, scores, first, gV) {
  let loss = 0;
  for (let m = 0; m < N; m++) scores[first + m] = 0;
  for (let n = 0; n < N; n++) {
    let r = n === label ? -1 : 0;
    for (let m = 0; m < N; m++) r += V[n * N + m] * mass[m];
    residual[n] = r;
    loss += 0.5 * r * r;
    for (let m = 0; m < N; m++) {
      scores[first + m] += r * V[n * N + m];
      gV[n * N + m] += r * mass[m];
    }
  }
  return loss;
}

// gA[begin + t] += Σ_s scores[s, token of sample s at t], by one table for all samples that share a byte.
function addScores(codes, scores, samples, bits, N, gA, begin, T, sums) {
  const mask = (1 << bits) - 1;
  const cells = 1 << (bits * samples);
  for (let code = 0; code < cells; code++) {
    let sum = 0;
    for (let s = 0; s < samples; s++) {
      const token = (code >>> (bits * s)) & mask;
      if (token < N) sum += scores[s * N + token];
    }
    sums[code] = sum;
  }
  for (let t = 0; t < T; t++) gA[begin + t] += sums[codes[t]];
}

/**
 * ∇̂_V: columns centred, divided by μ, and projected so that Vμ stays μ; in place.
 * "euclidean" is the paper's right factor I − μμᵀ/‖μ‖², "mu" the projector H ↦ H − (Hμ)1ᵀ of the μ-inner product.
 */
export function preconditionV(G, mu, projector = "euclidean") {
  const N = mu.length;
  const square = dot(mu, mu);
  for (let m = 0; m < N; m++) {
    let mean = 0;
    for (let n = 0; n < N; n++) mean += G[n * N + m];
    mean /= N;
    for (let n = 0; n < N; n++) G[n * N + m] = (G[n * N + m] - mean) / mu[m];
  }
  for (let n = 0; n < N; n++) {
    let along = 0;
    for (let m = 0; m < N; m++) along += G[n * N + m] * mu[m];
    for (let m = 0; m < N; m++) G[n * N + m] -= projector === "mu" ? along : (along * mu[m]) / square;
  }
  return G;
}

/** λ of each column: a number, or `multiple` standard deviations η_A √(K_V ρ / (B μ_k)) of one coordinate's noise in a step. */
export function levels(stage, V, mu) {
  if (typeof stage.lam === "number") return new Float64Array(mu.length).fill(stage.lam);
  const rho = (1 - dot(mu, mu)) / (mu.length - 1);
  const K_V = centredSquare(V, mu);
  return mu.map((share) => stage.lam.multiple * stage.eta_A * Math.sqrt((K_V * rho) / (stage.batchSize * share)));
}

/** One proximal step of a stage, in place: V ← V − η_V ∇̂_V;  a ← Proj(soft(a − η_A ∇_a/μ_k, λ)). The gradients are overwritten. */
export function proximalStep(V, A, gV, gA, mu, stage) {
  const N = mu.length;
  const T = A.length / N; // with several heads, the positions of all
  const lam = levels(stage, V, mu); // of the V before the step
  if (stage.eta_V > 0) {
    for (let head = 0; head < V.length; head += N * N) preconditionV(gV.subarray(head, head + N * N), mu, stage.projector);
    for (let i = 0; i < V.length; i++) V[i] -= stage.eta_V * gV[i];
  }
  if (stage.eta_A > 0) {
    for (let k = 0; k < N; k++) {
      let mean = 0;
      if (stage.centred) {
        for (let t = k * T; t < (k + 1) * T; t++) mean += gA[t];
        mean /= T;
      }
      proximalColumn(A, gA, k * T, T, stage.eta_A / mu[k], mean, lam[k]);
    }
  }
}

function proximalColumn(A, g, begin, T, rate, mean, lam) {
  let sum = 0;
  for (let t = begin; t < begin + T; t++) {
    const a = A[t] - rate * (g[t] - mean);
    const shrunk = a - Math.min(Math.max(a, -lam), lam); // without branches: noise would mispredict them
    A[t] = shrunk;
    sum += shrunk;
  }
  const shift = (1 - sum) / T;
  for (let t = begin; t < begin + T; t++) A[t] += shift;
}

/** The attention of a softmax transformer with logits W: each column after a softmax over positions, into A. */
export function softmaxColumns(W, A, N) {
  const T = W.length / N;
  for (let begin = 0; begin < W.length; begin += T) {
    let most = -Infinity;
    for (let t = begin; t < begin + T; t++) if (W[t] > most) most = W[t];
    let sum = 0;
    for (let t = begin; t < begin + T; t++) sum += A[t] = Math.exp(W[t] - most);
    for (let t = begin; t < begin + T; t++) A[t] /= sum;
  }
}

/** One step of plain gradient descent on V and the logits W, in place, with ∇_w = (diag(a) − aaᵀ)∇_a; A follows. */
export function softmaxStep(V, W, A, gV, gA, N, stage) {
  const T = W.length / N;
  for (let i = 0; i < V.length; i++) V[i] -= stage.eta_V * gV[i];
  for (let begin = 0; begin < W.length; begin += T) {
    let mean = 0;
    for (let t = begin; t < begin + T; t++) mean += A[t] * gA[t];
    for (let t = begin; t < begin + T; t++) W[t] -= stage.eta_A * A[t] * (gA[t] - mean);
  }
  softmaxColumns(W, A, N);
}

/** (V, A) ← (2μ1ᵀ − V, 2·11ᵀ/T − A): the mirror image, which computes the same function up to O(1/√T); in place. */
export function mirror(V, A, mu) {
  const N = mu.length;
  const twice = (2 * N) / A.length;
  for (let i = 0; i < V.length; i++) V[i] = 2 * mu[Math.floor(i / N)] - V[i];
  for (let i = 0; i < A.length; i++) A[i] = twice - A[i];
}

/** The μ-weighted mean skewness of the columns of A: below 0 where A looks like the mirror of a sparse attention. */
export function skewness(A, mu) {
  const T = A.length / mu.length;
  let total = 0;
  for (let k = 0; k < mu.length; k++) {
    let mean = 0;
    for (let t = k * T; t < (k + 1) * T; t++) mean += A[t];
    mean /= T;
    let square = 0;
    let cube = 0;
    for (let t = k * T; t < (k + 1) * T; t++) {
      const d = A[t] - mean;
      square += d * d;
      cube += d * d * d;
    }
    const scale = Math.sqrt(square / T);
    if (scale > 1e-14) total += (mu[k] * (cube / T)) / scale ** 3;
  }
  return total;
}

/** For each column, what an entry above its median must exceed to be hardly noise: `falsePositions` of N·T Gaussians would. */
export function noiseThreshold(A, N, falsePositions = 0.01) {
  const T = A.length / N;
  const quantile = -normalQuantile(falsePositions / A.length);
  return Float64Array.from({ length: N }, (_, k) => {
    const column = A.subarray(k * T, (k + 1) * T);
    const middle = median(column);
    return 1.4826 * median(column.map((a) => Math.abs(a - middle))) * quantile + 1e-12;
  });
}

/** An estimate of |α_A| without the truth: the μ-weighted mean, over columns, of the mass above the noise. */
export function estimatedSignal(A, mu) {
  const N = mu.length;
  const T = A.length / N;
  const threshold = noiseThreshold(A, N);
  let signal = 0;
  for (let k = 0; k < N; k++) {
    const column = A.subarray(k * T, (k + 1) * T);
    const middle = median(column);
    for (const a of column) if (Math.abs(a - middle) > threshold[k]) signal += mu[k] * (a - middle);
  }
  return Math.abs(signal);
}

/** Thresholding-projection, in place: a ← â + (1 − 1ᵀâ)·1/T with â = a·1{a ≥ λ₀}; λ₀ is measured as noise where it is null. */
export function thresholdProject(A, N, threshold = null) {
  const T = A.length / N;
  const noise = threshold === null ? noiseThreshold(A, N).map((x) => x + 1 / T) : new Float64Array(N).fill(threshold);
  for (let k = 0; k < N; k++) {
    let sum = 0;
    for (let t = k * T; t < (k + 1) * T; t++) {
      if (A[t] < noise[k]) A[t] = 0;
      sum += A[t];
    }
    for (let t = k * T; t < (k + 1) * T; t++) A[t] += (1 - sum) / T;
  }
}

/** Thresholding-normalisation, in place: a ← â / 1ᵀâ with â = a·1{a ≥ threshold}; a column that keeps nothing becomes uniform. */
export function thresholdNormalize(A, N, threshold) {
  const T = A.length / N;
  for (let k = 0; k < N; k++) {
    let mass = 0;
    for (let t = k * T; t < (k + 1) * T; t++) {
      if (A[t] < threshold) A[t] = 0;
      mass += A[t];
    }
    for (let t = k * T; t < (k + 1) * T; t++) A[t] = mass > 0 ? A[t] / mass : 1 / T;
  }
}
