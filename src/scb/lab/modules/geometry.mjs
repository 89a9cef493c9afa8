// The geometry of the paper on flat typed arrays: V and P are (N, N) by rows, V[n·N + m]; A and Q are (T, N) by columns, A[k·T + t].

/** ⟨X, Y⟩_μ = Σ_nm X[n, m] Y[n, m] μ_m for (N, N) arrays. */
export function innerV(X, Y, mu) {
  const N = mu.length;
  let sum = 0;
  for (let n = 0; n < N; n++) for (let m = 0; m < N; m++) sum += X[n * N + m] * Y[n * N + m] * mu[m];
  return sum;
}

/** X − μ1ᵀ. */
export function centred(X, mu) {
  const N = mu.length;
  return X.map((x, i) => x - mu[Math.floor(i / N)]);
}

/** K_V = ‖V − μ1ᵀ‖_μ²; K_P for V = P. */
export function centredSquare(V, mu) {
  const U = centred(V, mu);
  return innerV(U, U, mu);
}

/** √x, with what rounding leaves below 0 taken as 0. */
export function root(x) {
  return Math.sqrt(Math.max(x, 0));
}

/** V·v. */
export function times(V, v) {
  const N = v.length;
  const out = new Float64Array(N);
  for (let n = 0; n < N; n++) for (let m = 0; m < N; m++) out[n] += V[n * N + m] * v[m];
  return out;
}

export function dot(x, y) {
  let sum = 0;
  for (let i = 0; i < x.length; i++) sum += x[i] * y[i];
  return sum;
}

/** V₀ = μ1ᵀ: every token is followed by the stationary distribution. */
export function trivialV(mu) {
  const N = mu.length;
  return Float64Array.from({ length: N * N }, (_, i) => mu[Math.floor(i / N)]);
}

/** A₀ = 11ᵀ/T. */
export function uniformA(N, T) {
  return new Float64Array(N * T).fill(1 / T);
}

/** The median of a column; NumPy's: the mean of the two middle ones where there is no middle. */
export function median(values) {
  const sorted = Float64Array.from(values).sort();
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/** The x with Φ(x) = p, by Newton's method on an asymptotic start; for p in (0, ½]. */
export function normalQuantile(p) {
  let x = -Math.sqrt(-2 * Math.log(p));
  for (let i = 0; i < 60; i++) {
    const error = normalBelow(x) - p;
    const change = error / (Math.exp(-0.5 * x * x) / Math.sqrt(2 * Math.PI));
    x -= change;
    if (Math.abs(change) < 1e-15 * Math.abs(x)) break;
  }
  return x;
}

// Φ(x) for x ≤ 0: a series near 0, a continued fraction in the tail.
function normalBelow(x) {
  const density = Math.exp(-0.5 * x * x) / Math.sqrt(2 * Math.PI);
  if (x > -2) {
    let term = x;
    let sum = x;
    for (let n = 1; n < 100; n++) sum += term *= (x * x) / (2 * n + 1);
    return 0.5 + density * sum;
  }
  let fraction = -x;
  for (let n = 200; n > 0; n--) fraction = -x + n / fraction;
  return density / fraction;
}
