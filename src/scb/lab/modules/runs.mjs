// What a run is called: its colour, and what sets it apart from the others.
import { element } from "./fields.mjs";
import { short } from "./plots.mjs";
import { COLOURS } from "./state.mjs";

const LINES = ["solid", "dashed", "dotted", "double"];
const RECIPES = { paper: "the paper's method", tuned: "tuned", sgd: "SGD", softmax: "softmax attention" };
const SAID = {
  recipe: (value) => RECIPES[value],
  lam: (value) => `λ = ${scientific(value)}`,
  batchSize: (value) => `B = ${value}`,
  projector: (value) => (value === "mu" ? "μ-projector" : "the paper's projector"),
  resolveSign: (value) => (value ? "sign resolved" : "sign left to chance"),
  accuracy: (value) => `accuracy ${short(value)}`,
  freezeV: (value) => (value ? "V frozen" : "V trained"),
  freezeA: (value) => (value ? "A frozen" : "A trained"),
  seed: (value) => `seed ${value}`,
  eta: (value) => `η = ${value.join(", ")}`,
  steps: (value) => `steps ${value.join(", ")}`,
};

/** A small number as 3·10⁻⁴. */
export function scientific(value) {
  if (!(value > 0) || value >= 0.01) return short(value);
  const [factor, power] = value.toExponential().split("e");
  const digits = [...power].map((digit) => (digit === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit])).join("");
  return factor === "1" ? `10${digits}` : `${factor}·10${digits}`;
}

/** For each run, what differs from the others, in a few words. λ is not mentioned where the recipe has none. */
export function apart(runs) {
  const differing = Object.keys(SAID).filter((name) => new Set(runs.map((run) => String(run[name]))).size > 1);
  return runs.map((run) => {
    const told = differing.filter((name) => name !== "lam" || run.recipe === "paper");
    return told.map((name) => SAID[name](run[name])).join(", ");
  });
}

/** A piece of the line that a run is drawn with. */
export const swatch = (i) => element("span", { class: "swatch", style: `border-top: 3px ${LINES[i]} var(--run${i})` });

/** “Blue (SGD)”. */
export function runName(state, i) {
  const words = apart(state.runs)[i];
  const colour = COLOURS[i][0].toUpperCase() + COLOURS[i].slice(1);
  return words ? `${colour} (${words})` : colour;
}
