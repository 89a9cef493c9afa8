// What one keeps: the history as CSV, and the command or the lines of Python that make the same run.
import { COLOURS } from "./state.mjs";
import { PROJECTORS } from "./recipes.mjs";
import { COLUMNS } from "./run.mjs";

/** The histories of all runs, one after the other, with the run's colour first; columns as in `scb train`. */
export function historyCSV(runs) {
  const names = COLUMNS.filter((name) => runs.some((run) => run.history[name]?.some(Number.isFinite)));
  const rows = runs.flatMap((run, i) =>
    run.history.step.map((_, row) => [COLOURS[i], ...names.map((name) => cell(run.history[name]?.[row]))].join(",")),
  );
  return `run,${names.join(",")}\n${rows.join("\n")}\n`;
}

const cell = (value) => (Number.isFinite(value) ? String(value) : "");

/** Python's names for the settings of a run that differ from the recipe's own. */
function optionsOf(run) {
  const list = (values) => `[${values.join(", ")}]`;
  const all = {
    paper: { eta: list(run.eta), steps: list(run.steps), batch_size: run.batchSize, lam: run.lam, resolve_sign: run.resolveSign },
    sgd: {
      eta: list(run.eta.slice(0, 2)),
      steps: list(run.steps.slice(0, 2)),
      batch_size: run.batchSize,
      resolve_sign: run.resolveSign,
    },
    softmax: { steps: run.steps[0] + run.steps[1] + run.steps[2], batch_size: run.batchSize },
    tuned: { accuracy: run.accuracy },
  }[run.recipe];
  const own = Object.entries(all).filter(([name, value]) => String(value) !== String(PLAIN[run.recipe][name]));
  if (!["auto", PROJECTORS[run.recipe]].includes(run.projector)) own.push(["projector", run.projector]);
  return own;
}
// What the recipes of Python have without options.
const PLAIN = {
  paper: { eta: "[0.01, 0.005, 0.005]", steps: "[400, 600, 0]", batch_size: 64, lam: 1e-5, resolve_sign: true },
  sgd: { eta: "[0.01, 0.005]", steps: "[400, 600]", batch_size: 64, resolve_sign: true },
  softmax: { steps: 2000, batch_size: 256 },
  tuned: { accuracy: 0.02 },
};

/** Whether `scb train` has words for all of the state; transfer, a flip by hand, frozen layers and own data it has not. */
function isPlain(state) {
  const run = state.runs[state.view];
  return !state.data && !state.events.length && !run.freezeV && !run.freezeA;
}

/**
 * What to type to make the run that is shown, in a shell or in Python; samples are the same, so the figures are, to rounding.
 * `settledAt` is the step at which the run has ended by itself, before its stages were over; Python does not do that.
 */
export function pythonFor(state, settledAt = Infinity) {
  if (state.data) return pythonForData(state);
  if (state.task.heads > 1) return pythonForHeads(state.task);
  const transferred = state.events.find((event) => event.kind === "transfer")?.step ?? Infinity;
  const run = shortened(state.runs[state.view], Math.min(settledAt, transferred));
  return isPlain(state) ? command(state.task, run, state.every) : script(state, run);
}

/** The run with no more than `most` steps in its stages. */
function shortened(run, most) {
  let left = most;
  const steps = run.steps.map((planned) => {
    const taken = Math.min(planned, left);
    left -= taken;
    return taken;
  });
  return { ...run, steps };
}

function command(task, run, every) {
  const words = ["scb train", `--N ${task.N} --T ${task.T} --sparsity ${task.sparsity} --task-seed ${task.seed}`];
  if (task.ensemble !== "strong") words.push(`--ensemble ${task.ensemble}`);
  if (task.K_P) words.push(`--K-P ${task.K_P}`);
  words.push(`--recipe ${run.recipe} --seed ${run.seed}`);
  if (every !== 10) words.push(`--every ${every}`);
  const own = optionsOf(run).map(([name, value]) => (/[[ ]/.test(String(value)) ? `'${name}=${value}'` : `${name}=${value}`));
  if (own.length) words.push(`--set ${own.join(" ")}`);
  return words.join(" ");
}

const pythonValue = (value) => {
  if (typeof value === "boolean") return value ? "True" : "False";
  return /^[a-z]+$/.test(String(value)) ? `"${value}"` : String(value);
};

function script(state, run) {
  const { task } = state;
  const ensemble = task.ensemble === "strong" ? "" : `, ensemble="${task.ensemble}"`;
  const contrast = task.K_P ? `, K_P=${task.K_P}` : "";
  const random = (seed) => `scb.Task.random(${task.N}, ${task.T}, ${task.sparsity}, seed=${seed}${ensemble}${contrast})`;
  const options = optionsOf(run).map(([name, value]) => `, ${name}=${pythonValue(value)}`);
  const lines = ["from dataclasses import replace", "", "import scb"];
  if (run.freezeA) lines.push("from scb.training.sources.sampled import Fresh");
  lines.push("", `task = ${random(task.seed)}`, `recipe = scb.recipes.${run.recipe}(task${options.join("")})`);
  lines.push(...trainLines(run, run.seed, state.every));
  let phase = 0;
  for (const { kind, step, seed } of state.events) {
    if (kind === "flip") lines.push(`# At step ${step}, the lab switched to the mirror image, (2μ1ᵀ − V, 2·11ᵀ/T − A).`);
    else {
      phase += 1;
      const projector = run.projector === "auto" ? "" : `, projector="${run.projector}"`;
      lines.push(`task = scb.Task(task.P, ${random(seed)}.Q)  # at step ${step}: the same P, another Q`);
      lines.push(`recipe = scb.recipes.transfer(task, run.V, accuracy=${run.accuracy}${projector})`);
      lines.push(...trainLines(run, run.seed + phase, 1));
    }
  }
  return lines.join("\n");
}

function trainLines(run, seed, every) {
  const freeze = (layer) => `recipe = replace(recipe, stages=tuple(replace(s, eta_${layer}=0.0) for s in recipe.stages))`;
  // By itself Python draws other numbers of the same distribution where A is frozen.
  const source = run.freezeA ? ", source=Fresh(task)" : "";
  const train = `run = scb.train(task, recipe, seed=${seed}, every=${every}${source})`;
  return [...(run.freezeV ? [freeze("V")] : []), ...(run.freezeA ? [freeze("A")] : []), train];
}

function pythonForData(state) {
  const file = state.data.unit === "lines" ? "column.csv" : "text.txt";
  const unit = state.data.unit === "words" ? " --by word" : "";
  const words = "# This command puts the same question to the library's estimator, which is made for dependent sequences:";
  return `${words}\nscb fit ${file}${unit} --max-lag ${state.task.T + 1} --transition shared`;
}

function pythonForHeads({ N, T, sparsity, seed, heads }) {
  const words = "# This is the same task. The recipe in Python rotates the heads, whereas in the lab the ℓ1 step turns them.";
  return `${words}\nimport scb\n\ntask = scb.Task.random(${N}, ${T}, ${sparsity}, seed=${seed}, heads=${heads})\nrun = scb.train(task, scb.recipes.tuned(task), seed=0)`;
}
