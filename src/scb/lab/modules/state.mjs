// The state of the page and its address: a link reproduces the page to the step. Everything that differs from the default is written.
import { DEFAULTS } from "./recipes.mjs";

export const RUN_DEFAULTS = { ...DEFAULTS, seed: 0 };
export const COLOURS = ["blue", "orange", "green", "purple"]; // the names of runs
export const MOST_RUNS = COLOURS.length;

export function defaultState() {
  return {
    scene: "",
    task: { N: 3, T: 5000, sparsity: 2, ensemble: "strong", K_P: 0, seed: 0, heads: 1 },
    data: null, // own data: { text, unit }
    runs: [structuredClone(RUN_DEFAULTS)],
    events: [], // { step, kind: "flip", run } or { step, kind: "transfer", seed }
    every: 10, // steps between two rows of the history
    step: 0,
    view: 0, // the run whose A and V are shown
    speed: "full",
    play: false,
    embed: "", // in another page: the panels and settings to show, with commas between them
    theme: "", // light or dark; else what the reader prefers
  };
}

const OWN_RECIPE = { eta: [0.02, 0.02, 0.005], steps: [400, 1600, 0], batchSize: 256, lam: 1e-3, projector: "mu" };

/** Make a state one that trains on own data of so many symbols. */
export function useData(state, data, length) {
  const T = Math.min(24, length - 3);
  Object.assign(state, { data, view: 0, runs: [{ ...structuredClone(RUN_DEFAULTS), ...OWN_RECIPE }] });
  Object.assign(state.task, { T, sparsity: Math.min(2, T), heads: 1 });
}

// name in the address, where it lies in the state, how it is read
const number = (text) => {
  const value = Number(text);
  if (text === "" || !Number.isFinite(value)) throw new Error(`${text} is not a number`);
  return value;
};
const whole =
  (low, high = Infinity) =>
  (text) => {
    const value = number(text);
    const range = high < Infinity ? `from ${low} to ${high.toLocaleString("en")}` : `of at least ${low}`;
    if (!Number.isInteger(value) || value < low || value > high) throw new Error(`${text} is not a whole number ${range}`);
    return value;
  };
const positive = (text) => {
  const value = number(text);
  if (value < 0) throw new Error(`${text} is negative`);
  return value;
};
const oneOf =
  (...words) =>
  (text) => {
    if (!words.includes(text)) throw new Error(`${text} is not one of ${words.join(", ")}`);
    return text;
  };
const list = (read) => (text) => text.split("/").map(read);
const truth = (text) => oneOf("0", "1")(text) === "1";

const TASK_FIELDS = {
  N: whole(2, 255),
  T: whole(2, 1e6),
  sparsity: whole(1),
  ensemble: oneOf("strong", "dirichlet", "uniform", "softmax"),
  K_P: positive,
  seed: whole(0),
  heads: whole(1, 2),
};
const RUN_FIELDS = {
  recipe: oneOf("paper", "tuned", "sgd", "softmax"),
  eta: list(positive),
  steps: list(whole(0)),
  batchSize: whole(1),
  lam: positive,
  projector: oneOf("auto", "euclidean", "mu"),
  resolveSign: truth,
  accuracy: positive,
  freezeV: truth,
  freezeA: truth,
  seed: whole(0),
};
const PAGE_FIELDS = {
  scene: String,
  every: whole(1),
  step: whole(0),
  view: whole(0),
  speed: oneOf("1", "10", "60", "150", "full"),
  play: truth,
  embed: String,
  theme: oneOf("light", "dark"),
};

const written = (value) => {
  if (Array.isArray(value)) return value.join("/");
  return typeof value === "boolean" ? String(Number(value)) : String(value);
};
const differs = (value, other) => written(value) !== written(other);

/** The state as the part of an address after '#'; `packed` is the own data as `packText` gives it. */
export function formatState(state, packed = "") {
  const plain = defaultState();
  const parts = [];
  const add = (name, value) =>
    parts.push(`${name}=${encodeURIComponent(value).replaceAll("%2F", "/").replaceAll("%3A", ":").replaceAll("%3B", ";")}`);
  for (const name of Object.keys(TASK_FIELDS)) {
    if (differs(state.task[name], plain.task[name])) add(`task.${name}`, written(state.task[name]));
  }
  state.runs.forEach((run, i) => {
    const fields = Object.keys(RUN_FIELDS).filter((name) => differs(run[name], RUN_DEFAULTS[name]));
    if (fields.length || i > 0) add("run", fields.map((name) => `${name}:${written(run[name])}`).join(";"));
    else if (state.runs.length > 1) add("run", "");
  });
  for (const event of state.events)
    add("event", `${event.step}:${event.kind}:${event.kind === "transfer" ? event.seed : event.run}`);
  for (const name of Object.keys(PAGE_FIELDS)) if (differs(state[name], plain[name])) add(name, written(state[name]));
  if (state.data) {
    add("unit", state.data.unit);
    parts.push(`data=${packed}`);
  }
  return parts.join("&");
}

/** The state that an address stands for, and what in it could not be read; limits of sliders do not apply. `data` is left packed. */
export function parseState(hash) {
  const state = defaultState();
  const problems = [];
  const runs = [];
  let packed = null;
  let unit = "characters";
  const put = (target, name, fields, text) => {
    const read = fields[name];
    if (!read) return problems.push(`${name} is not a known name`);
    try {
      target[name] = read(text);
    } catch (error) {
      problems.push(`${name}: ${error.message}`);
    }
  };
  for (const part of hash.replace(/^#/, "").split("&").filter(Boolean)) {
    const at = part.indexOf("=");
    const name = at < 0 ? part : part.slice(0, at);
    let text = at < 0 ? "" : part.slice(at + 1);
    try {
      text = decodeURIComponent(text);
    } catch {
      problems.push(`${name} has a broken escape sequence`);
      continue;
    }
    if (name.startsWith("task.")) put(state.task, name.slice(5), TASK_FIELDS, text);
    else if (name === "run") runs.push(readRun(text, put));
    else if (name === "event") readEvent(text, state.events, problems);
    else if (name === "data") packed = text;
    else if (name === "unit") unit = ["characters", "words", "lines"].includes(text) ? text : "characters";
    else put(state, name, PAGE_FIELDS, text);
  }
  if (runs.length) state.runs = runs.slice(0, MOST_RUNS);
  if (state.task.sparsity > state.task.T) {
    problems.push(`sparsity = ${state.task.sparsity} is more than T = ${state.task.T}`);
    state.task.sparsity = state.task.T;
  }
  state.view = Math.min(state.view, state.runs.length - 1);
  state.events.sort((x, y) => x.step - y.step);
  return { state, packed, unit, problems };
}

function readRun(text, put) {
  const run = structuredClone(RUN_DEFAULTS);
  for (const field of text.split(";").filter(Boolean)) {
    const at = field.indexOf(":");
    put(run, field.slice(0, at), RUN_FIELDS, field.slice(at + 1));
  }
  for (const name of ["eta", "steps"]) if (run[name].length !== 3) run[name] = structuredClone(RUN_DEFAULTS[name]);
  return run;
}

function readEvent(text, events, problems) {
  const match = /^(\d+):(flip|turn|transfer):(\d+)$/.exec(text);
  if (!match) {
    problems.push(`event ${text} is not a known event`);
    return;
  }
  const step = Number(match[1]);
  events.push(
    match[2] === "transfer" ? { step, kind: "transfer", seed: Number(match[3]) } : { step, kind: match[2], run: Number(match[3]) },
  );
}

/** A text, compressed, in letters that an address may have. */
export async function packText(text) {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export async function unpackText(packed) {
  const binary = atob(packed.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).text();
}
