// A training run: where it stands, its history, and how it goes on. The loop is that of scb.train, step for step.
import {
  batchGradient,
  estimatedSignal,
  mirror,
  proximalStep,
  skewness,
  softmaxStep,
  thresholdNormalize,
  thresholdProject,
  workspace,
} from "./engine.mjs";
import { trivialV, uniformA } from "./geometry.mjs";
import { HEAD_MEASURES, headGradient, headSpace, headStart, holdSizes, measureHeads, turnHeads } from "./heads.mjs";
import { MEASURES, measure } from "./metrics.mjs";
import { freeze, freshSource, frozenGradient } from "./sources.mjs";

export const COLUMNS = ["step", "stage", "samples", "batch_loss", ...MEASURES, ...HEAD_MEASURES];
const LIMIT = 1e6; // a run has diverged when ‖V‖ or the norm of a column of A reaches this, or is NaN
const CHECK_EVERY = 10;

/**
 * A new run. `task` has the truth, or is null where nobody knows it (own data); `known` has μ, K_P, K_Q, sparsity and
 * weightThreshold for the learner. `measureAt(V, A)` gives one row of the history.
 */
export function createRun({ task, known = task, stages, seed, every = 10, source = null, V = null, measureAt = null }) {
  const { T } = known;
  const N = known.mu.length;
  const heads = task?.heads ?? 1;
  const run = {
    task,
    known,
    stages,
    seed,
    every,
    N,
    T,
    source: source ?? freshSource(task, seed),
    measureAt: measureAt ?? ((values, attention) => (heads > 1 ? measureHeads : measure)(task, values, attention)),
    heads,
    V: V ? Float64Array.from(V) : heads > 1 ? headStart(known.mu, seed) : trivialV(known.mu),
    A: uniformA(N, heads * T),
    W: stages[0]?.softmax ? new Float64Array(N * T) : null, // the logits of softmax attention
    step: 0,
    stage: 0,
    stageStep: 0,
    samples: 0,
    loss: NaN,
    finished: stages.length === 0,
    diverged: null,
    settled: false,
    frozen: null,
    space: heads > 1 ? headSpace(N, T) : workspace(N, T),
    history: Object.fromEntries(COLUMNS.map((name) => [name, []])),
  };
  evaluate(run);
  return run;
}

/** Take one step of the run; at the end of a stage, what is done there. Rows of the history are kept on the way. */
export function advance(run) {
  if (run.finished) return;
  const stage = run.stages[run.stage];
  if (run.stageStep === 0) stage.enter.forEach((rounding) => round(run, rounding));
  run.loss = takeStep(run, stage);
  run.step++;
  run.stageStep++;
  run.samples += stage.batchSize;
  if (!bounded(run)) {
    run.diverged = run.step;
    run.finished = true;
  } else if (stageOver(run, stage)) {
    stage.leave.forEach((rounding) => round(run, rounding));
    run.stage++;
    run.stageStep = 0;
    run.finished = run.stage === run.stages.length;
  }
  if (run.step % run.every === 0 || run.finished || run.stageStep === 0) {
    evaluate(run);
    if (!run.finished && run.stage === run.stages.length - 1 && nothingChanges(run)) {
      run.settled = true;
      run.finished = true;
    }
  }
}

function takeStep(run, stage) {
  const { V, A, W, known, space, source, N, T } = run;
  if (run.heads > 1) {
    const loss = headGradient(source, stage.batchSize, run.step, V, A, N, T, space);
    proximalStep(V, A, space.gV, space.gA, known.mu, stage);
    if (stage.lam > 0) holdSizes(V, A, known.mu, sizeOfHead(run)); // else ℓ1 would only shift the size from A to V
    return loss;
  }
  if (stage.eta_A === 0 && run.task) {
    if (run.stageStep === 0 || !run.frozen) run.frozen = freeze(run.task, A) ?? "dense";
    if (run.frozen !== "dense") {
      const loss = frozenGradient(run.task, run.frozen, run.seed, stage.batchSize, run.step, V, space);
      proximalStep(V, A, space.gV, space.gA, known.mu, stage);
      return loss;
    }
  }
  const loss = batchGradient(source, stage.batchSize, run.step, V, A, N, T, space);
  if (W) softmaxStep(V, W, A, space.gV, space.gA, N, stage);
  else proximalStep(V, A, space.gV, space.gA, known.mu, stage);
  return loss;
}

// The typical ‖P_h − μ1ᵀ‖_μ of a head.
const sizeOfHead = ({ known }) => Math.sqrt((known.constants.right[0][0] + known.constants.right[1][1]) / 2);

function round(run, rounding) {
  const { V, A, known, N } = run;
  if (rounding === "sign" && skewness(A, known.mu) < 0) mirror(V, A, known.mu);
  if (rounding === "project") thresholdProject(A, N);
  if (rounding === "normalize") thresholdNormalize(A, N, known.weightThreshold);
}

function stageOver(run, stage) {
  if (run.stageStep >= stage.steps) return true;
  return stage.stopAt !== null && run.stageStep % CHECK_EVERY === 0 && estimatedSignal(run.A, run.known.mu) >= stage.stopAt;
}

function bounded({ V, A, N }) {
  const T = A.length / N;
  const square = (values, begin, end) => {
    let sum = 0;
    for (let i = begin; i < end; i++) sum += values[i] * values[i];
    return sum;
  };
  if (!(square(V, 0, V.length) < LIMIT ** 2)) return false;
  for (let k = 0; k < N; k++) if (!(square(A, k * T, (k + 1) * T) < LIMIT ** 2)) return false;
  return true;
}

/** Append one row to the history; a row between two stages is the last of the one that has ended. */
export function evaluate(run) {
  const betweenStages = run.stageStep === 0 && run.step > 0;
  const row = {
    step: run.step,
    stage: betweenStages ? run.stage : run.stage + 1,
    samples: run.samples,
    batch_loss: run.loss,
    ...run.measureAt(run.V, run.A),
  };
  for (const name of COLUMNS) run.history[name].push(row[name] ?? NaN);
}

/** Turn the two heads so that each position belongs to one. */
export function turn(run) {
  if (run.heads > 1) turnHeads(run.V, run.A, run.known.mu, sizeOfHead(run));
  evaluate(run);
}

/** Go over to the mirror image by hand. */
export function flip(run) {
  mirror(run.V, run.A, run.known.mu);
  evaluate(run);
}

// Whether the means over the last 250 steps and over the 250 before them agree in everything that is drawn, but for half of what it
// fluctuates by; once there is a signal.
function nothingChanges(run) {
  const rows = Math.ceil(250 / run.every);
  const { history } = run;
  const inStage = history.stage.filter((stage) => stage === run.stage + 1).length;
  if (inStage < 2 * rows || !(Math.abs(history.alpha_A.at(-1)) >= 0.5)) return false;
  return ["alpha_V", "alpha_A", "dist_V", "dist_A", "delta_V", "delta_A"].every((name) => {
    const before = moments(history[name].slice(-2 * rows, -rows));
    const now = moments(history[name].slice(-rows));
    return Math.abs(now.mean - before.mean) < Math.max(1e-3, 0.5 * Math.max(now.spread, before.spread));
  });
}

function moments(values) {
  const mean = values.reduce((sum, x) => sum + x, 0) / values.length;
  return { mean, spread: Math.sqrt(values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / values.length) };
}
