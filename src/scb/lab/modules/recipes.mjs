// Recipes: Algorithm 1 as a list of stages, as scb.recipes has them. A stage says how many steps, which step sizes, λ and batch size,
// and what is done on entering and leaving it. Roundings: "sign", "project" (at the noise, or at {project: x}), "normalize".
import { dot, times } from "./geometry.mjs";

export const RECIPES = ["paper", "tuned", "sgd", "softmax", "transfer"];

export const DEFAULTS = {
  recipe: "paper",
  eta: [0.01, 0.005, 0.005],
  steps: [400, 600, 0],
  batchSize: 64,
  lam: 1e-5,
  projector: "auto", // the recipe's own
  resolveSign: true,
  accuracy: 0.02,
  freezeV: false,
  freezeA: false,
};

/** The projector that each recipe has by itself, as in Python. */
export const PROJECTORS = { paper: "euclidean", sgd: "euclidean", softmax: "euclidean", tuned: "mu", transfer: "mu" };

/** The stages of a recipe for what is known: μ, K_P, K_Q and the sparsity. Stages without steps are left out, with their roundings. */
export function stagesOf(known, settings) {
  const make = known.heads > 1 ? twoHeads : { paper, tuned, sgd, softmax, transfer }[settings.recipe];
  if (!make) throw new Error(`recipe = ${settings.recipe}: it must be one of ${RECIPES.join(", ")}`);
  return make(known, settings)
    .filter((stage) => stage.steps > 0)
    .map((stage) => ({
      ...stage,
      eta_V: settings.freezeV ? 0 : stage.eta_V,
      eta_A: settings.freezeA ? 0 : stage.eta_A,
      projector: settings.projector === "auto" ? PROJECTORS[settings.recipe] : settings.projector,
    }));
}

function stage(known, name, steps, eta, rest) {
  return {
    name,
    steps,
    eta_V: eta / known.K_Q,
    eta_A: eta / known.K_P,
    lam: 0,
    centred: false,
    enter: [],
    leave: [],
    stopAt: null,
    ...rest,
  };
}

function paper(known, { eta, steps, batchSize, lam, resolveSign }) {
  const sign = resolveSign ? ["sign"] : [];
  return [
    stage(known, "1", steps[0], eta[0], { batchSize }),
    stage(known, "2", steps[1], eta[1], { batchSize, lam, enter: sign, leave: sign }),
    stage(known, "3", steps[2], eta[2], { batchSize, eta_A: 0, enter: ["normalize"] }),
  ];
}

function sgd(known, { eta, steps, batchSize, resolveSign }) {
  const sign = resolveSign ? ["sign"] : [];
  return [
    stage(known, "1", steps[0], eta[0], { batchSize }),
    stage(known, "2", steps[1], eta[1], { batchSize, enter: sign, leave: sign }),
  ];
}

/** Plain gradient descent on a softmax transformer. Near uniform attention a step on the logits is T² times weaker than one on A. */
function softmax(known, { steps, batchSize }) {
  const { mu, T } = known;
  const N = mu.length;
  const rates = { eta_V: 0.2 * N, eta_A: 0.04 * N * T, softmax: true };
  return [stage(known, "softmax", steps[0] + steps[1] + steps[2], 0, { batchSize, ...rates })];
}

/** Two heads: learn the function without ℓ1, then let ℓ1 turn the heads. */
function twoHeads(known, { eta, steps, batchSize, lam }) {
  return [
    stage(known, "1", steps[0], eta[0], { batchSize, centred: true }),
    stage(known, "2", steps[1], eta[1], { batchSize, centred: true, lam }),
  ];
}

function tuned(known, { accuracy }) {
  const { mu, K_P, K_Q, sparsity: Q } = known;
  const N = mu.length;
  const eta = 0.02;
  const rho = (1 - dot(mu, mu) - K_P * K_Q) / (N - 1);
  const spread = (eta * rho) / (K_P * Math.min(...mu)); // B times the variance of one coordinate of a, up to factors
  const B1 = Math.ceil(spread * (10 * 3 * Q) ** 2);
  const B2 = Math.ceil(Math.max(((spread / 2) * Q) / accuracy ** 2, B1));
  const B3 = Math.ceil(((N - 1) ** 2 * eta * rho) / (2 * K_Q * accuracy ** 2));
  const length = Math.ceil(1 / eta);
  return [
    stage(known, "1", 30 * length, eta, { batchSize: B1, stopAt: 0.2 }),
    stage(known, "2", 10 * length, eta, {
      batchSize: B2,
      lam: (eta * accuracy) / Q,
      centred: true,
      enter: ["sign", "project"],
      stopAt: 0.95,
    }),
    stage(known, "3", 5 * length, eta, { batchSize: B3, eta_A: 0, enter: ["normalize"] }),
  ];
}

/**
 * One step on A from V = ½V̂ + ½μ1ᵀ and uniform attention; Stages 2 and 3 of Algorithm 1; and one more step on A. Batch sizes follow
 * from the noise of one coordinate, for an overlap of at least ½ between V̂ and P; nothing depends on T.
 */
function transfer(known, { accuracy }) {
  const { mu, K_P, K_Q, sparsity: Q, T } = known;
  const N = mu.length;
  const eta = 0.2;
  const multiple = 2;
  const overlap = 0.5;
  const squareQ = K_Q + 1 / T;
  const rho = (1 - dot(mu, mu)) / (N - 1);
  const spread = rho / (K_P * Math.min(...mu)); // B times the variance of one coordinate of a after a step with η = 1 from V = P
  const B1 = Math.ceil(spread * ((6 * 2 * Q) / overlap) ** 2);
  const B2 = Math.ceil(spread * (multiple * 6 * Q) ** 2);
  const B3 = Math.ceil(((N - 1) ** 2 * eta * rho) / (2 * squareQ * accuracy ** 2));
  const B4 = Math.ceil((N * Q * rho) / (K_P * accuracy ** 2));
  const rounding = 4 * Q <= T ? ["project"] : []; // where most positions matter, the others do not tell what is noise
  const onA = (name, rest) => stage(known, name, 1, 1, { eta_V: 0, ...rest });
  const onV = (name, steps, rest) => stage(known, name, steps, eta, { eta_V: eta / squareQ, ...rest });
  return [
    onA("first", { batchSize: B1 }),
    onV("2", 30, { batchSize: B2, lam: { multiple }, centred: true, enter: rounding }),
    onV("3", 25, { batchSize: B3, eta_A: 0, enter: ["normalize"] }),
    onA("last", { batchSize: B4, leave: [...rounding, "normalize"] }),
  ];
}

/** Where transfer begins: V = μ1ᵀ + ½(V̂ − μ1ᵀ), made to meet Vμ = μ. */
export function transferStart(V, mu) {
  const N = mu.length;
  const H = V.map((v, i) => v - mu[Math.floor(i / N)]);
  const along = times(H, mu);
  return H.map((h, i) => mu[Math.floor(i / N)] + 0.5 * (h - along[Math.floor(i / N)]));
}
