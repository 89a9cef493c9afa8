// The sparse contextual bigram: a transition matrix P (columns are distributions), its stationary distribution μ, a sparse attention Q.
// Tasks are drawn as Python's Task.random draws them: the same seed gives the same task.
import { centredSquare, dot, trivialV } from "./geometry.mjs";
import { headConstants } from "./heads.mjs";
import { Generator } from "./numpy.mjs";

export const ENSEMBLES = ["strong", "dirichlet", "uniform", "softmax"];
const CONTRAST = 1.4; // the strong ensemble keeps K_P at least this many times ‖μ‖²: assumption (c) asks for 1

/** A random task, as Task.random draws it. `K_P` moves P to this contrast and keeps μ; 0 leaves it as it was drawn. */
export function randomTask({ N, T, sparsity, seed, ensemble = "strong", K_P = 0, heads = 1 }) {
  if (!(N >= 2)) throw new Error(`N = ${N}: there must be at least 2 tokens`);
  if (!(sparsity >= 1 && sparsity <= T)) throw new Error(`sparsity = ${sparsity}: it must lie between 1 and T = ${T}`);
  const rng = new Generator(seed);
  let P = null;
  if (ensemble === "strong") {
    const mu = nearUniform(rng, N, 1);
    P = N > 2 ? randomTransition(mu, CONTRAST, rng) : Float64Array.of(0, 1, 1, 0);
  } else {
    P = randomColumns(ensemble, N, rng);
  }
  if (K_P > 0) P = withContrast(P, stationary(P), K_P);
  const drawn = drawAttention(rng, N, T, sparsity);
  if (heads === 1) return makeTask(P, ...sorted(drawn, N).slice(0, 2), N, T);
  if (ensemble !== "strong" || K_P > 0) throw new Error("two heads are drawn by the strong ensemble only");
  if (N < 3) throw new Error(`N = ${N}: with two heads there must be at least 3 tokens`);
  const second = randomTransition(stationary(P), CONTRAST, rng);
  const owners = Float64Array.from(rng.permutation(N * sparsity), (i) => i % 2);
  const [positions, weights, owned] = sorted({ ...drawn, owners }, N);
  return withHeads(Float64Array.of(...P, ...second), positions, weights, owned, N, T);
}

/** A task with two heads from its parts; `owners` says which head each position belongs to. */
export function withHeads(P, positions, weights, owners, N, T) {
  const task = { ...makeTask(P.subarray(0, N * N), positions, weights, N, T), P, owners, heads: 2 };
  const constants = headConstants(task);
  return { ...task, constants, K_P: constants.K_P, K_Q: constants.K_Q };
}

// Q as Task.random draws it: positions without repetition, then weights within a factor 2 of equal ones.
function drawAttention(rng, N, T, sparsity) {
  const chosen = Array.from({ length: N }, () => rng.choice(T, sparsity));
  return { chosen, weights: nearUniform(rng, sparsity, N) };
}

// The entries of Q, column after column, each in the order of heads and positions: [positions, weights, owners].
function sorted({ chosen, weights, owners = new Float64Array(weights.length) }, N) {
  const column = (k) => Array.from(chosen[k], (position, slot) => [position, weights[slot * N + k], owners[slot * N + k]]);
  const order = ([p, , h], [q, , g]) => h - g || p - q;
  const entries = Array.from({ length: N }, (_, k) => column(k).sort(order)).flat();
  const part = (at) => entries.map((entry) => entry[at]);
  return [Int32Array.from(part(0)), Float64Array.from(part(1)), Int32Array.from(part(2))];
}

/** The task with the P of one and the Q of another: what transfer goes to. */
export function withAttentionOf(task, other) {
  return makeTask(task.P, other.positions, other.weights, task.N, task.T);
}

/** A task from its parts: P (N × N by rows), positions and weights (column k holds entries k·Q … (k + 1)·Q − 1). */
export function makeTask(P, positions, weights, N, T) {
  const mu = stationary(P);
  const sparsity = positions.length / N;
  let square = 0;
  for (let i = 0; i < weights.length; i++) square += weights[i] ** 2 * mu[Math.floor(i / sparsity)];
  const K_P = centredSquare(P, mu);
  return {
    N,
    T,
    sparsity,
    P,
    mu,
    positions,
    weights,
    K_P,
    K_Q: square - 1 / T,
    squareQ: square,
    weightThreshold: 1 / (6 * sparsity),
    heads: 1,
  };
}

// Columns (of a rows × columns matrix, by rows) that sum to 1, with entries proportional to uniforms on [2/3, 4/3].
function nearUniform(rng, rows, columns) {
  const w = Float64Array.from({ length: rows * columns }, () => rng.uniform(2 / 3, 4 / 3));
  return normalizedColumns(w, columns);
}

function normalizedColumns(M, columns) {
  const sums = new Float64Array(columns);
  for (let i = 0; i < M.length; i++) sums[i % columns] += M[i];
  return M.map((x, i) => x / sums[i % columns]);
}

// Ordinary random transitions: independent columns, Dirichlet(1) (drawn column by column), normalised uniforms, or softmax of Gaussians.
function randomColumns(ensemble, N, rng) {
  const draw = { dirichlet: () => rng.exponential(), uniform: () => rng.random(), softmax: () => Math.exp(rng.normal()) }[ensemble];
  if (!draw) throw new Error(`ensemble = ${ensemble}: it must be one of ${ENSEMBLES.join(", ")}`);
  const drawn = Float64Array.from({ length: N * N }, draw);
  const P = ensemble === "dirichlet" ? drawn.map((_, i) => drawn[(i % N) * N + Math.floor(i / N)]) : drawn;
  return normalizedColumns(P, N);
}

// P moved to ‖P − μ1ᵀ‖_μ² = K_P: towards μ1ᵀ where that is less than P has, towards the identity where it is more; μ stays.
function withContrast(P, mu, K_P) {
  const N = mu.length;
  const largest = 1 - dot(mu, mu);
  if (!(K_P < largest))
    throw new Error(`K_P = ${K_P}: it must lie between 0 and 1 − ‖μ‖² = ${largest.toPrecision(4)} of this task`);
  const found = centredSquare(P, mu);
  const trivial = trivialV(mu);
  if (K_P <= found) {
    const share = Math.sqrt(K_P / found);
    return P.map((p, i) => share * p + (1 - share) * trivial[i]);
  }
  const mixed = (c) => P.map((p, i) => (1 - c) * p + (i % (N + 1) === 0 ? c : 0));
  return mixed(crossing((c) => centredSquare(mixed(c), mu) - K_P));
}

/** The stationary distribution of an irreducible P, by the elimination of Grassmann, Taksar and Heyman, which never subtracts. */
export function stationary(P) {
  const N = Math.sqrt(P.length);
  const G = Float64Array.from({ length: N * N }, (_, i) => P[(i % N) * N + Math.floor(i / N)]); // row-stochastic
  for (let last = N - 1; last > 0; last--) {
    let leave = 0;
    for (let n = 0; n < last; n++) leave += G[last * N + n];
    for (let m = 0; m < last; m++) {
      G[m * N + last] /= leave;
      for (let n = 0; n < last; n++) G[m * N + n] += G[m * N + last] * G[last * N + n];
    }
  }
  const mu = new Float64Array(N).fill(1);
  for (let n = 1; n < N; n++) {
    mu[n] = 0;
    for (let m = 0; m < n; m++) mu[n] += mu[m] * G[m * N + n];
  }
  const total = mu.reduce((sum, x) => sum + x, 0);
  return mu.map((x) => x / total);
}

// Scale the rows and columns of a positive M until both sum to μ.
function sinkhorn(M, mu) {
  const N = mu.length;
  let column = new Float64Array(N).fill(1);
  let row = mu;
  for (let iteration = 0; iteration < 10000; iteration++) {
    row = mu.map((share, n) => share / dot(M.subarray(n * N, (n + 1) * N), column));
    const sums = mu.map((_, m) => row.reduce((sum, r, n) => sum + M[n * N + m] * r, 0));
    if (Math.max(...mu.map((share, m) => Math.abs(column[m] * sums[m] - share))) <= 1e-14) break;
    column = mu.map((share, m) => share / sums[m]);
  }
  return M.map((x, i) => row[Math.floor(i / N)] * x * column[i % N]);
}

// A random extreme coupling of μ with itself: cells filled greedily along two random orders of the tokens.
function staircase(mu, rng) {
  const N = mu.length;
  const ends = (order) => {
    let sum = 0;
    return order.map((n) => (sum += mu[n]));
  };
  const rows = rng.permutation(N);
  const columns = rng.permutation(N);
  const endsRow = ends(rows);
  const endsColumn = ends(columns);
  const cuts = [...endsRow, ...endsColumn].sort((x, y) => x - y);
  const J = new Float64Array(N * N);
  let from = 0;
  for (const cut of cuts) {
    const length = cut - from;
    const middle = from + length / 2;
    const i = Math.min(endsRow.filter((end) => end < middle).length, N - 1);
    const j = Math.min(endsColumn.filter((end) => end < middle).length, N - 1);
    J[rows[i] * N + columns[j]] += length;
    from = cut;
  }
  return J;
}

// A random positive P with stationary distribution μ and K_P ≥ contrast·‖μ‖²: a dense one, mixed with just enough of an extreme coupling.
function randomTransition(mu, contrast, rng) {
  const N = mu.length;
  const target = contrast * dot(mu, mu);
  const perColumn = (J) => J.map((x, i) => x / mu[i % N]);
  const squares = Float64Array.from({ length: N * N }, () => rng.exponential() ** 2 + 1e-6);
  const dense = perColumn(sinkhorn(squares, mu));
  let sharp = Float64Array.from({ length: N * N }, (_, i) => (i % (N + 1) === 0 ? 1 : 0));
  for (let attempt = 0; attempt < 50; attempt++) {
    const candidate = perColumn(staircase(mu, rng));
    if (centredSquare(candidate, mu) >= 1.02 * target) {
      sharp = candidate;
      break;
    }
  }
  const mixed = (c) => dense.map((x, i) => (1 - c) * x + c * sharp[i]);
  return normalizedColumns(mixed(crossing((c) => centredSquare(mixed(c), mu) - target)), N);
}

// The smallest c in [0, 1] at which an f that ends above 0 stays at or above 0, by bisection.
function crossing(f) {
  let low = 0;
  let high = 1;
  if (f(low) >= 0) return low;
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (f(middle) >= 0) high = middle;
    else low = middle;
  }
  return high;
}
