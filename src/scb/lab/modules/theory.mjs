// The population process in two dimensions: what an infinite batch would do, and what the plane and the thin lines show.
import { root } from "./geometry.mjs";

/** What (α_V, α_A) gains a unit of step size, before scaling with η_V and η_A. */
export function populationDrift(alpha_V, alpha_A, K_P, K_Q, T) {
  const gap = 1 - alpha_V * alpha_A;
  return [K_Q * gap * alpha_A + (1 - alpha_V) / T, K_P * gap * alpha_V];
}

/** One step of the population process. */
export function populationStep([alpha_V, alpha_A], eta_V, eta_A, K_P, K_Q, T) {
  const [growV, growA] = populationDrift(alpha_V, alpha_A, K_P, K_Q, T);
  return [alpha_V + eta_V * growV, alpha_A + eta_A * growA];
}

/** The population's prediction for a recipe from (0, 0): rows { step, alpha_V, alpha_A, dist_V, dist_A, loss }, every so many steps. */
export function predict(task, stages, every) {
  const { K_P, K_Q, T, mu } = task;
  const rows = [];
  let alpha = [0, 0];
  let step = 0;
  const keep = () => {
    const [v, a] = alpha;
    const square = mu.reduce((sum, share) => sum + share * share, 0);
    const QA = a * K_Q + 1 / T;
    const AA = a * a * K_Q + 1 / T;
    const loss = 0.5 * (1 - square - 2 * QA * v * K_P + AA * v * v * K_P);
    rows.push({ step, alpha_V: v, alpha_A: a, dist_V: Math.abs(1 - v) * root(K_P), dist_A: Math.abs(1 - a) * root(K_Q), loss });
  };
  keep();
  for (const stage of stages) {
    for (let i = 0; i < stage.steps; i++) {
      alpha = populationStep(alpha, stage.eta_V, stage.eta_A, K_P, K_Q, T);
      step++;
      if (step % every === 0) keep();
    }
  }
  return rows;
}
