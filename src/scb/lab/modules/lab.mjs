// The experiment behind the page: a task or own data, up to four runs in step, and what happens to them on the way.
// The worker holds one; tests drive it without a worker.
import { dataMeasure, encode, knowledge, strongestLags } from "./data.mjs";
import { stagesOf, transferStart } from "./recipes.mjs";
import { advance, createRun, flip, turn } from "./run.mjs";
import { firstSamples, windowSource } from "./sources.mjs";
import { randomTask, withAttentionOf } from "./task.mjs";
import { predict } from "./theory.mjs";

const BINS = 400; // of positions, for what is drawn
const WHOLE = 8192; // entries of A that are sent as they are, for pictures of one sample or one text
const SAMPLES = 6; // that one can follow through the model, where T is at most STRIP
const STRIP = 16;

/** The experiment that a state describes, at step 0. */
export function createLab(state) {
  const data = state.data ? encode(state.data.text, state.data.unit) : null;
  const lab = { state: structuredClone(state), step: 0, phase: 0, phaseStart: 0, data, events: [...state.events], runs: [] };
  const { T } = state.task;
  if (data) {
    lab.task = null;
    lab.known = knowledge(data.tokens, data.names.length, T, state.task.sparsity);
  } else {
    lab.task = randomTask(state.task);
    lab.known = lab.task;
  }
  const settings = { known: lab.known, task: lab.task, every: state.every };
  for (const run of state.runs) {
    const stages = stagesOf(lab.known, run);
    let own = {};
    if (data) {
      const N = data.names.length;
      for (const stage of stages) stage.centred = true; // contexts are not independent: the common part of a gradient is large
      own = { source: windowSource(data.tokens, N, T, run.seed), measureAt: dataMeasure(data.tokens, lab.known.mu, T) };
    }
    lab.runs.push(createRun({ ...settings, ...own, stages, seed: run.seed }));
  }
  happen(lab);
  return lab;
}

/** One step of every run that has not finished. */
export function stepLab(lab) {
  for (const run of lab.runs) advance(run);
  lab.step++;
  happen(lab);
}

export function finished(lab) {
  return lab.runs.every((run) => run.finished) && !lab.events.some((event) => event.step >= lab.step);
}

/** Do now what is to be done by hand, and keep it, so that a link can do it again. */
export function intervene(lab, event) {
  const placed = { ...event, step: lab.step };
  lab.state.events.push(placed);
  apply(lab, placed);
  return placed;
}

function happen(lab) {
  for (const event of lab.events) if (event.step === lab.step) apply(lab, event);
}

function apply(lab, event) {
  if (event.kind === "flip" && lab.runs[event.run]) flip(lab.runs[event.run]);
  if (event.kind === "turn" && lab.runs[event.run]) turn(lab.runs[event.run]);
  if (event.kind === "transfer" && lab.task) transfer(lab, event.seed);
}

// Keep V, draw the Q of another task, go on by the recipe of transfer.
function transfer(lab, seed) {
  lab.task = withAttentionOf(lab.task, randomTask({ ...lab.state.task, seed }));
  lab.known = lab.task;
  lab.phase++;
  lab.phaseStart = lab.step;
  lab.runs = lab.runs.map((old, i) => {
    const settings = lab.state.runs[i];
    const stages = stagesOf(lab.task, { ...settings, recipe: "transfer" });
    const run = createRun({
      task: lab.task,
      stages,
      seed: settings.seed + lab.phase,
      every: 1,
      V: transferStart(old.V, lab.task.mu),
    });
    run.before = [...(old.before ?? []), { history: old.history, from: old.from ?? 0 }];
    run.from = lab.step;
    return run;
  });
}

/** What the page draws of the task: the truth, and the population's prediction for each run. */
export function describe(lab) {
  const { T, mu, sparsity, K_P, K_Q } = lab.known;
  const truth = lab.task && { P: lab.task.P, positions: lab.task.positions, weights: lab.task.weights, owners: lab.task.owners };
  return {
    N: mu.length,
    T,
    mu,
    sparsity,
    K_P,
    K_Q,
    truth,
    heads: lab.task?.heads ?? 1,
    singular: lab.task?.constants?.singular ?? null,
    names: lab.data?.names ?? null,
    length: lab.data?.tokens.length ?? null,
    samples: lab.task && T <= STRIP && lab.task.heads === 1 ? firstSamples(lab.task, lab.runs[0].seed, SAMPLES) : [],
    phaseStart: lab.phaseStart,
    stages: lab.runs.map((run) =>
      run.stages.map(({ name, steps, eta_V, eta_A, batchSize, lam, stopAt }) => ({
        name,
        steps,
        eta_V,
        eta_A,
        batchSize,
        lam: typeof lam === "number" ? lam : null,
        stopAt,
      })),
    ),
    predictions:
      lab.task?.heads === 1
        ? lab.runs.map((run) => (lab.phase === 0 && !run.W ? predict(lab.task, run.stages, lab.state.every) : []))
        : [],
  };
}

/** Where a run stands, small enough to be sent sixty times per second: V, the attention in bins, rows of the history since `since`. */
export function snapshot(lab, index, since) {
  const run = lab.runs[index];
  const rows = {};
  for (const [name, values] of Object.entries(run.history)) rows[name] = values.slice(since);
  return {
    step: run.from ? run.from + run.step : run.step,
    stage: Math.min(run.stage, run.stages.length - 1),
    samples: run.samples,
    finished: run.finished,
    settled: run.settled,
    diverged: run.diverged,
    from: run.from ?? 0,
    rows,
    V: run.V.slice(),
    attention: run.heads > 1 ? { A: run.A.slice() } : attentionBins(run, lab.task),
    lags: lab.data ? strongestLags(run.A, run.N, run.T) : null,
  };
}

// For each column and bin of positions: least, largest and root mean square entry off the truth; and the entries on the truth.
function attentionBins(run, task) {
  const { A, N, T } = run;
  const bins = Math.min(T, BINS);
  const low = new Float32Array(N * bins).fill(Infinity);
  const high = new Float32Array(N * bins).fill(-Infinity);
  const square = new Float32Array(N * bins);
  const isTrue = new Uint8Array(T);
  const onTruth = task ? new Float64Array(task.positions.length) : new Float64Array(0);
  const Q = task ? task.sparsity : 0;
  for (let k = 0; k < N; k++) {
    for (let j = k * Q; j < (k + 1) * Q; j++) {
      isTrue[task.positions[j]] = 1;
      onTruth[j] = A[k * T + task.positions[j]];
    }
    for (let bin = 0; bin < bins; bin++) {
      const from = Math.floor((bin * T) / bins);
      const to = Math.floor(((bin + 1) * T) / bins);
      const cell = k * bins + bin;
      let count = 0;
      for (let t = from; t < to; t++) {
        if (isTrue[t]) continue;
        const a = A[k * T + t];
        if (a < low[cell]) low[cell] = a;
        if (a > high[cell]) high[cell] = a;
        square[cell] += a * a;
        count++;
      }
      square[cell] = count ? Math.sqrt(square[cell] / count) : 0;
    }
    for (let j = k * Q; j < (k + 1) * Q; j++) isTrue[task.positions[j]] = 0;
  }
  return { bins, low, high, square, onTruth, A: A.length <= WHOLE ? A.slice() : null };
}
