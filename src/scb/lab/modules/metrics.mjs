// What a run is judged by: population loss, signals α, deviations ‖Δ‖, distances and similarities to the truth, the normalised "star".
import { centred, dot, innerV, root, times } from "./geometry.mjs";

export const MEASURES = [
  "loss",
  "alpha_V",
  "alpha_A",
  "delta_V",
  "delta_A",
  "dist_V",
  "dist_A",
  "sim_V",
  "sim_A",
  "dist_V_star",
  "dist_A_star",
  "sim_V_star",
  "sim_A_star",
];

/** E l from s = 1ᵀA (N), ‖A‖_μ² and ⟨A, Q⟩_μ, for any V. */
export function lossByMoments(task, V, s, AA, QA) {
  const { mu } = task;
  const mean = times(V, mu);
  let sums = 0;
  let squares = 0;
  for (let k = 0; k < mu.length; k++) {
    sums += mu[k] * s[k];
    squares += mu[k] * s[k] ** 2;
  }
  const cross = QA * innerV(V, task.P, mu) + (sums - QA) * dot(mu, mean);
  const square = AA * innerV(V, V, mu) + (squares - AA) * dot(mean, mean);
  return 0.5 * (1 - 2 * cross + square);
}

/** All MEASURES of a point (V, A), in one pass over A. */
export function measure(task, V, A) {
  const { N, T, mu, sparsity, K_P, K_Q, squareQ: QQ, weightThreshold } = task;
  const s = new Float64Array(N);
  let K_A = 0;
  let K_AQ = 0;
  let sumOfB = 0;
  let square = 0; // ‖A*‖_μ² and ⟨A*, Q⟩_μ of the star
  let starQ = 0;
  for (let k = 0; k < N; k++) {
    const column = columnMoments(A, k * T, T, weightThreshold);
    s[k] = 1 + column.sum;
    sumOfB += mu[k] * column.sum;
    K_A += mu[k] * column.square;
    let reached = 0;
    for (let j = k * sparsity; j < (k + 1) * sparsity; j++) {
      const a = A[k * T + task.positions[j]];
      K_AQ += mu[k] * (a - 1 / T) * task.weights[j];
      if (a >= weightThreshold) reached += task.weights[j] * a;
    }
    square += mu[k] * (column.kept > 0 ? column.keptSquare / column.kept ** 2 : 1 / T);
    starQ += mu[k] * (column.kept > 0 ? reached / column.kept : 1 / T);
  }
  const AA = K_A + mu.reduce((sum, share, k) => sum + share * (2 * (s[k] - 1) + 1), 0) / T;
  const QA = K_AQ + 1 / T;
  const cross = K_AQ - sumOfB / T;
  const alpha_A = K_AQ / K_Q;
  const fromLine = (theta) => root(K_A - 2 * theta * cross + theta ** 2 * K_Q);
  const U = centred(V, mu);
  const centredP = centred(task.P, mu);
  const alpha_V = innerV(U, centredP, mu) / K_P;
  const away = U.map((u, i) => u - alpha_V * centredP[i]);
  const gap = V.map((v, i) => v - task.P[i]);
  const ratio = starQ / square; // V* = μ1ᵀ + ratio·(P − μ1ᵀ), the population's regression on A*
  const V_star = task.P.map((p, i) => p - (1 - ratio) * centredP[i]);
  return {
    loss: lossByMoments(task, V, s, AA, QA),
    alpha_V,
    alpha_A,
    delta_V: root(innerV(away, away, mu)),
    delta_A: fromLine(alpha_A),
    dist_V: root(innerV(gap, gap, mu)),
    dist_A: fromLine(1),
    sim_V: similarity(V, task.P, mu),
    sim_A: QA / root(AA * QQ),
    dist_V_star: Math.abs(ratio - 1) * root(K_P),
    dist_A_star: root(square - 2 * starQ + QQ),
    sim_V_star: similarity(V_star, task.P, mu),
    sim_A_star: starQ / root(square * QQ),
  };
}

// For b = a − 1/T: Σb and Σb² of a column; Σa and Σa² over the entries that the threshold keeps.
function columnMoments(A, begin, T, threshold) {
  const mean = 1 / T;
  let sum = 0;
  let square = 0;
  let kept = 0;
  let keptSquare = 0;
  for (let t = begin; t < begin + T; t++) {
    const a = A[t];
    const b = a - mean;
    sum += b;
    square += b * b;
    if (a >= threshold) {
      kept += a;
      keptSquare += a * a;
    }
  }
  return { sum, square, kept, keptSquare };
}

/** The μ-cosine ⟨V, P⟩_μ / (‖V‖_μ‖P‖_μ). */
function similarity(V, P, mu) {
  return innerV(V, P, mu) / Math.sqrt(innerV(V, V, mu) * innerV(P, P, mu));
}
