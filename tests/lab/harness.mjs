// Answers questions about the lab's engine: JSON { call, args } on standard input, JSON on standard output. Python asks, and compares.
import fs from "node:fs";
import { createLab, describe, finished, snapshot, stepLab } from "../../src/scb/lab/modules/lab.mjs";
import * as data from "../../src/scb/lab/modules/data.mjs";
import * as engine from "../../src/scb/lab/modules/engine.mjs";
import * as heads from "../../src/scb/lab/modules/heads.mjs";
import { reasons } from "../../src/scb/lab/modules/lags.mjs";
import { measure } from "../../src/scb/lab/modules/metrics.mjs";
import { Generator, seedState64 } from "../../src/scb/lab/modules/numpy.mjs";
import { historyCSV, pythonFor } from "../../src/scb/lab/modules/exports.mjs";
import { ticks } from "../../src/scb/lab/modules/plots.mjs";
import { stagesOf } from "../../src/scb/lab/modules/recipes.mjs";
import { advance, createRun } from "../../src/scb/lab/modules/run.mjs";
import { SCENES, sceneHash } from "../../src/scb/lab/modules/scenes.mjs";
import { follow, sentences } from "../../src/scb/lab/modules/sample.mjs";
import { firstSamples, freshSource, givenSource, windowSource } from "../../src/scb/lab/modules/sources.mjs";
import { defaultState, formatState, packText, parseState, unpackText } from "../../src/scb/lab/modules/state.mjs";
import { makeTask, randomTask } from "../../src/scb/lab/modules/task.mjs";
import { predict } from "../../src/scb/lab/modules/theory.mjs";

const floats = (values) => Float64Array.from(values);
const plainTask = ({ P, positions, weights, N, T }) => makeTask(floats(P), Int32Array.from(positions), floats(weights), N, T);

function draw(task, seed, batchSize, step) {
  const source = freshSource(task, seed);
  const bits = engine.tokenBits(task.N);
  const lasts = source.begin(batchSize, step);
  const A = new Float64Array(task.N * task.T);
  const context = [];
  const label = [];
  for (let i = 0; i < batchSize; i++) {
    const codes = new Uint8Array(task.T);
    label.push(source.draw(i, A, lasts[i] * task.T, codes, 0, new Float64Array(4 * task.N)));
    context.push(...codes.map((code) => code & ((1 << bits) - 1)));
  }
  return { context, last: [...lasts], label };
}

// V and A with their heads one after the other, as the lab has them, and what a step of a stage makes of a batch.
function headStep({ V, A, batch, mu, stage }) {
  [V, A, mu] = [floats(V), floats(A), floats(mu)];
  const N = mu.length;
  const T = A.length / N / 2;
  const space = heads.headSpace(N, T);
  const loss = heads.headGradient(givenSource(batch, N, T), batch.last.length, 0, V, A, N, T, space);
  const [gV, gA] = [space.gV.slice(), space.gA.slice()];
  engine.proximalStep(V, A, space.gV, space.gA, mu, stage);
  return { loss, gV, gA, V, A };
}

const calls = {
  headStep,
  headTask: (settings) => randomTask({ ...settings, heads: 2 }),
  headDraw: ({ settings, seed, batchSize, step }) => draw(randomTask({ ...settings, heads: 2 }), seed, batchSize, step),
  headMeasure: ({ settings, V, A }) => heads.measureHeads(randomTask({ ...settings, heads: 2 }), floats(V), floats(A)),
  headStart: ({ mu, seed }) => heads.headStart(floats(mu), seed),
  turnHeads({ V, A, mu, size }) {
    [V, A] = [floats(V), floats(A)];
    heads.turnHeads(V, A, floats(mu), size);
    return { V, A };
  },
  follow({ task, V, A, seed }) {
    const made = plainTask(task);
    return firstSamples(made, seed, 6).map((sample) => {
      const seen = follow(sample, floats(V), floats(A), made.N);
      return { sample, seen, said: sentences(sample, seen, made, made) };
    });
  },
  reasons: ({ tokens, V, A, N, T, count }) => reasons(tokens, floats(V), floats(A), N, T, count),

  generator({ seed, draws }) {
    const rng = new Generator(BigInt(seed));
    const take = { random: () => rng.random(), exponential: () => rng.exponential(), normal: () => rng.normal() };
    return draws.map(([name, ...rest]) =>
      rest.length && name in take ? Array.from({ length: rest[0] }, take[name]) : rng[name](...rest),
    );
  },
  seeds: ({ entropy, words }) => seedState64(BigInt(entropy), words).map(String),
  task: (settings) => randomTask(settings),
  gradient({ V, A, batch, N, T }) {
    const space = engine.workspace(N, T);
    const loss = engine.batchGradient(givenSource(batch, N, T), batch.last.length, 0, floats(V), floats(A), N, T, space);
    return { loss, gV: space.gV, gA: space.gA };
  },
  precondition: ({ G, mu, projector }) => engine.preconditionV(floats(G), floats(mu), projector),
  proximal({ V, A, gV, gA, mu, stage }) {
    [V, A] = [floats(V), floats(A)];
    engine.proximalStep(V, A, floats(gV), floats(gA), floats(mu), stage);
    return { V, A };
  },
  rounding({ name, V, A, mu, threshold }) {
    [V, A] = [floats(V), floats(A)];
    if (name === "mirror") engine.mirror(V, A, floats(mu));
    if (name === "project") engine.thresholdProject(A, mu.length, threshold);
    if (name === "normalize") engine.thresholdNormalize(A, mu.length, threshold);
    return { V, A };
  },
  readings: ({ A, mu }) => ({
    skewness: engine.skewness(floats(A), floats(mu)),
    noise: engine.noiseThreshold(floats(A), mu.length),
    signal: engine.estimatedSignal(floats(A), floats(mu)),
  }),
  measure: ({ task, V, A }) => measure(plainTask(task), floats(V), floats(A)),
  draw: ({ task, seed, batchSize, step }) => draw(plainTask(task), seed, batchSize, step),
  counts({ task, seed, batchSize, steps }) {
    const made = plainTask(task);
    const counts = {};
    for (let step = 0; step < steps; step++) {
      const { context, last, label } = draw(made, seed, batchSize, step);
      for (let i = 0; i < batchSize; i++) {
        const code = [...context.slice(i * made.T, (i + 1) * made.T), last[i], label[i]].reduce(
          (sum, token) => sum * made.N + token,
          0,
        );
        counts[code] = (counts[code] ?? 0) + 1;
      }
    }
    return counts;
  },
  run({ task, settings, seed, every }) {
    const made = plainTask(task);
    const run = createRun({ task: made, stages: stagesOf(made, settings), seed, every });
    while (!run.finished) advance(run);
    return { V: run.V, A: run.A, history: run.history };
  },
  runGiven({ task, settings, batches }) {
    const made = plainTask(task);
    const sources = batches.map((batch) => givenSource(batch, made.N, made.T));
    let current = null;
    const source = {
      begin: (batchSize, step) => (current = sources[step % sources.length]).begin(),
      draw: (...rest) => current.draw(...rest),
    };
    const run = createRun({ task: made, stages: stagesOf(made, settings), seed: 0, source });
    while (!run.finished) advance(run);
    return { V: run.V, A: run.A };
  },
  predict: ({ task, settings, every }) => predict(plainTask(task), stagesOf(plainTask(task), settings), every),
  windows({ tokens, N, T, seed, batchSize }) {
    const source = windowSource(Uint8Array.from(tokens), N, T, seed);
    const lasts = source.begin(batchSize, 0);
    const samples = [];
    for (let i = 0; i < batchSize; i++) {
      const codes = new Uint8Array(T);
      const label = source.draw(i, new Float64Array(N * T), lasts[i] * T, codes, 0, new Float64Array(4 * N));
      samples.push([...codes, lasts[i], label]);
    }
    return samples;
  },
  encode({ text, unit }) {
    const { tokens, names } = data.encode(text, unit ?? data.guessUnit(text));
    return { tokens, names, unit: unit ?? data.guessUnit(text) };
  },
  async lab({ hash, steps }) {
    const { state, packed, unit } = parseState(hash);
    if (packed !== null) state.data = { text: await unpackText(packed), unit };
    const lab = createLab(state);
    while (!finished(lab) && (steps === undefined || lab.step < steps)) stepLab(lab);
    const run = lab.runs[state.view];
    const found = { step: lab.step, V: run.V, A: run.A, history: run.history, csv: historyCSV(lab.runs), python: pythonFor(state) };
    return { ...found, task: describe(lab), snapshot: snapshot(lab, state.view, 0) };
  },
  ticks: ({ low, high, count }) => ticks(low, high, count),
  parse: ({ hash }) => parseState(hash),
  format: ({ state }) => formatState({ ...defaultState(), ...state }),
  defaultState,
  scenes: () => SCENES.map((scene) => ({ ...scene, link: sceneHash(scene) })),
  unpack: ({ packed }) => unpackText(packed),
  pack: async ({ text }) => ({ packed: await packText(text), back: await unpackText(await packText(text)) }),
};

const asked = JSON.parse(fs.readFileSync(0, "utf8"));
const answers = [];
for (const { call, args } of asked) {
  try {
    answers.push({ value: await calls[call](args ?? {}) });
  } catch (error) {
    answers.push({ error: error.message });
  }
}
const plain = (key, value) => (ArrayBuffer.isView(value) ? Array.from(value) : value);
fs.writeFileSync(1, JSON.stringify(answers, plain));
