// The page: keeps the state, talks to the worker, draws, and writes the address.
import { drawControls, element, helpFor } from "./controls.mjs";
import { curve } from "./curves.mjs";
import { encode, guessUnit } from "./data.mjs";
import { historyCSV, pythonFor } from "./exports.mjs";
import { HELP } from "./help.mjs";
import { attention, matrices, plane } from "./panels.mjs";
import { readStyle, short } from "./plots.mjs";
import { RUN_DEFAULTS, defaultState, formatState, packText, parseState, unpackText } from "./state.mjs";
import { SCENES, sceneHash } from "./scenes.mjs";

const $ = (id) => document.getElementById(id);
const calm = matchMedia("(prefers-reduced-motion: reduce)");
// shape: how many cells of the grid; own: the title for own data, where nobody knows the truth
const PANELS = [
  { id: "attention", title: "Attention A and the truth Q", own: "Attention A", legend: "○ truth  ● learned  ▒ the rest", panel: attention, shape: "wide" },
  { id: "matrices", title: "V beside P", own: "V", panel: matrices },
  { id: "plane", title: "Signals and flow", legend: "thin: infinite batch", panel: plane, truth: true, shape: "tall" },
  { id: "dist_A", title: "‖A − Q‖", panel: curve("dist_A", HELP.dist_A), truth: true },
  { id: "dist_V", title: "‖V − P‖", panel: curve("dist_V", HELP.dist_V), truth: true },
  { id: "delta_A", title: "‖Δ_A‖: noise in A", panel: curve("delta_A", HELP.delta_A), truth: true },
  { id: "delta_V", title: "‖Δ_V‖: noise in V", panel: curve("delta_V", HELP.delta_V), truth: true },
  { id: "dist_A_star", title: "‖A* − Q‖, normalised", panel: curve("dist_A_star", HELP.dist_A_star), truth: true, shape: "half" },
  { id: "loss", title: "Loss", panel: curve("loss", HELP.loss), shape: "half" },
];

let state = defaultState();
let packed = ""; // own data, as the address has it
let task = null;
let runs = [];
let playing = false;
let over = false;
let ticket = 0;
let dirty = false;
let style = readStyle();
let lastDrawn = 0;
const frames = { count: 0, since: performance.now(), perSecond: 0, slowest: 0, last: 0 };

const worker = new Worker(URL.createObjectURL(new Blob([$("worker-source").textContent], { type: "text/javascript" })));

// ------------------------------------------------------------------------------------------------ state and address

function address() {
  return formatState({ ...state, play: false }, packed);
}

function writeAddress() {
  const hash = `#${address()}`;
  if (hash !== location.hash) history.replaceState(null, "", hash);
}

/** Edit the settings: the experiment begins anew. */
function change(edit) {
  const was = playing;
  edit(state);
  state.step = 0;
  state.events = [];
  state.view = Math.min(state.view, state.runs.length - 1);
  state.task.sparsity = Math.min(Math.max(state.task.sparsity, 1), state.task.T);
  restart(was);
}

function restart(play = false) {
  ticket++;
  runs = [];
  task = null;
  over = false;
  playing = play;
  notice(null);
  worker.postMessage({ type: "start", ticket, state, play });
  controls();
  writeAddress();
}

/** What an address means: nothing at all begins the lecture, and a scene's name alone stands for its whole link. */
function meantBy(hash) {
  const [, name] = /^#?(?:scene=(\w+))?(?:&?play=1)?$/.exec(hash) ?? [];
  if (name === undefined && hash.replace("#", "")) return hash;
  const scene = SCENES.find(({ id }) => id === (name ?? SCENES[0].id));
  return scene ? sceneHash(scene) : hash;
}

async function readAddress() {
  const read = parseState(meantBy(location.hash));
  state = read.state;
  packed = "";
  if (read.packed !== null) {
    try {
      const text = await unpackText(read.packed);
      encode(text, read.unit);
      state.data = { text, unit: read.unit };
      packed = read.packed;
    } catch {
      read.problems.push("the data in the address are broken");
    }
  }
  const play = state.play;
  state.play = false;
  $("speed").value = state.speed;
  story();
  restart(play);
  if (read.problems.length) notice(`In the address: ${read.problems.join("; ")}.`);
}

// ------------------------------------------------------------------------------------------------ the worker

const freshRun = () => ({ history: {}, V: null, attention: null, step: 0, samples: 0, from: 0 });

const incoming = {
  task(message) {
    task = message.task;
    if (runs.length === 0) runs = task.stages.map(freshRun);
    layPanels();
  },
  late(message) {
    if (runs.length === 0) runs = message.late.map(freshRun);
    message.late.forEach((part, i) => append(runs[i], part));
  },
  frame(message) {
    message.runs.forEach((frame, i) => absorb(runs[i], frame));
    playing = message.playing;
    over = message.finished;
    state.step = message.step;
    if (!playing) {
      writeAddress();
      refreshPython();
    }
    announce();
    dirty = true;
  },
  happened(message) {
    state.events.push(message.event);
  },
  error(message) {
    playing = false;
    notice(`${message.message}.`);
  },
};

worker.onmessage = ({ data }) => {
  if (data.ticket === ticket) incoming[data.type](data);
};
worker.onerror = (event) => notice(`The worker failed: ${event.message}`);

/** Rows of a history; after a transfer, their steps count from `from` on. */
function append(run, { rows, from }) {
  for (const [name, values] of Object.entries(rows)) {
    run.history[name] ??= [];
    const offset = name === "step" ? from : 0;
    for (const value of values) run.history[name].push(value + offset);
  }
}

function absorb(run, frame) {
  append(run, frame);
  for (const name of ["step", "stage", "samples", "finished", "settled", "diverged", "from", "lags"]) run[name] = frame[name];
  if (frame.V) {
    run.V = frame.V;
    run.attention = frame.attention;
  }
}

function play() {
  if (over) return;
  playing = true;
  worker.postMessage({ type: "play", speed: state.speed });
}

function pause() {
  worker.postMessage({ type: "pause" });
}

// ------------------------------------------------------------------------------------------------ drawing

function layPanels() {
  const shown = PANELS.filter((spec) => !(spec.truth && !task.truth));
  const ids = shown.map((spec) => spec.id).join() + (task.names ? ",lags" : "");
  const height = (spec) => {
    const narrow = innerWidth < 760;
    if (spec.id === "plane") return narrow ? 320 : 446;
    if (spec.id === "matrices") return Math.min(task.truth ? 420 : 280, ($("canvas-matrices").clientWidth - 40) / (task.truth ? 2 : 1) + 40);
    if (spec.id !== "attention") return 190;
    const strips = task.N > 6 && !narrow ? Math.ceil(task.N / 2) : task.N;
    return Math.max(task.truth ? 250 : 280, strips * (narrow ? 66 : 78) + 20);
  };
  if ($("panels").dataset.ids !== ids) {
    $("panels").dataset.ids = ids;
    $("panels").replaceChildren(...shown.map(figure), ...(task.names ? [lagsFigure()] : []));
  }
  for (const spec of shown) $(`canvas-${spec.id}`).style.height = `${Math.round(height(spec))}px`;
}

const titleOf = (spec) => (task.truth ? spec.title : (spec.own ?? spec.title));

function figure(spec) {
  const canvas = element("canvas", { id: `canvas-${spec.id}`, role: "img", tabindex: "0" });
  canvas.addEventListener("pointermove", (event) => pointAt(event, spec, canvas));
  canvas.addEventListener("pointerleave", hideTip);
  const title = titleOf(spec);
  const png = element("button", { "aria-label": `PNG of ${title}`, onclick: () => savePNG(spec, canvas) }, "PNG");
  const legend = task.truth && spec.legend ? [element("span", { class: "hint" }, spec.legend)] : [];
  const caption = element("figcaption", {}, element("h2", { "data-help": spec.id, tabindex: "0" }, title), ...legend, png);
  return element("figure", { class: `panel ${spec.shape ?? ""}`, id: `panel-${spec.id}` }, caption, canvas);
}

function lagsFigure() {
  const caption = element("figcaption", {}, element("h2", { "data-help": "lags", tabindex: "0" }, "Which lags light up"));
  return element("figure", { class: "panel half", id: "panel-lags" }, caption, element("table", { id: "lags" }));
}

function drawLags(run) {
  const rows = (run.lags ?? []).map(({ token, lag, weight }) =>
    element("tr", {}, element("td", {}, `after “${task.names[token]}”`), element("td", {}, `lag ${lag}`), element("td", {}, short(weight))));
  $("lags").replaceChildren(element("tr", {}, element("th", {}, "current"), element("th", {}, "looks back"), element("th", {}, "attention")), ...rows);
}

/** Whether there is something to draw: the first frame of an experiment has come, with what is shown of the run in view. */
function ready() {
  const run = runs[state.view];
  return Boolean(task && run?.V && run.attention && run.V.length === task.N ** 2);
}

const viewOf = () => ({ task, runs, style, state: { ...state, log: $("log").checked } });

function draw() {
  const view = viewOf();
  if (!ready()) return;
  const run = runs[state.view];
  for (const spec of PANELS) {
    const canvas = $(`canvas-${spec.id}`);
    if (!canvas || (spec.truth && !task.truth)) continue;
    spec.panel.draw(canvas, view);
    canvas.setAttribute("aria-label", `${titleOf(spec)}. ${summary(spec.id, run)}`);
  }
  if (task.names) drawLags(run);
  $("status").textContent = statusLine(run);
  $("play").textContent = playing ? "❚❚ Pause" : "▶ Run";
  for (const id of ["play", "step", "end"]) $(id).disabled = over && !playing;
}

function summary(id, run) {
  const value = run.history[id]?.at(-1);
  if (Number.isFinite(value)) return `Now ${short(value)} at step ${run.step}.`;
  return `α_V ${short(run.history.alpha_V?.at(-1))}, α_A ${short(run.history.alpha_A?.at(-1))} at step ${run.step}.`;
}

function statusLine(run) {
  const parts = [`step ${run.step.toLocaleString("en")}`, `${run.samples.toLocaleString("en")} samples`];
  if (task.truth) parts.push(`α_V ${short(run.history.alpha_V.at(-1))}`, `α_A ${short(run.history.alpha_A.at(-1))}`);
  else parts.push(`loss ${short(run.history.loss.at(-1))}`);
  if (run.diverged) parts.push("diverged");
  else if (over) parts.push(run.settled ? "nothing changes any more" : "the end");
  return parts.join(" · ");
}

function frame(now) {
  frames.count++;
  if (frames.last && playing) frames.slowest = Math.max(frames.slowest, now - frames.last);
  frames.last = now;
  if (now - frames.since > 1000) {
    frames.perSecond = (frames.count * 1000) / (now - frames.since);
    frames.count = 0;
    frames.since = now;
  }
  const wait = calm.matches && playing ? 500 : 0; // little motion: two pictures a second
  if (dirty && now - lastDrawn >= wait) {
    dirty = false;
    lastDrawn = now;
    draw();
    worker.postMessage({ type: "drawn" });
  }
  requestAnimationFrame(frame);
}

// ------------------------------------------------------------------------------------------------ what is said

function notice(words, button = null) {
  $("notice").hidden = !words;
  $("notice").replaceChildren(...(words ? [words] : []), ...(button ? [button] : []));
  $("notice").dataset.kind = button ? "mirror" : "";
}

/** Tell of the mirror image, once it is clear, and of a run that diverged. */
function announce() {
  const run = runs[state.view];
  if (!run) return;
  if (run.diverged) return notice(`The run diverged at step ${run.diverged}: smaller step sizes or larger batches are needed.`);
  const [v, a] = [run.history.alpha_V?.at(-1), run.history.alpha_A?.at(-1)];
  const mirrored = v < -0.04 && a < -0.04;
  if (mirrored && $("notice").dataset.kind !== "mirror") {
    const flip = element("button", { id: "flip", onclick: () => intervene({ kind: "flip", run: state.view }) }, "Flip it");
    notice("This is the mirror image: α_V and α_A are both negative. It computes the same function up to O(1/T), and noise chose it.", flip);
  } else if (!mirrored && $("notice").dataset.kind === "mirror") notice(null);
}

function intervene(event) {
  worker.postMessage({ type: "intervene", event, play: playing || event.kind === "transfer", speed: state.speed });
}

function story() {
  const at = SCENES.findIndex((scene) => scene.id === state.scene);
  for (const [i, button] of [...$("scenes").querySelectorAll("button")].entries()) button.setAttribute("aria-pressed", String(i === at));
  $("story").hidden = at < 0;
  if (at < 0) return;
  const next = SCENES[at + 1];
  const onward = next ? [element("button", { id: "next-scene", onclick: () => goTo(next) }, `Next: ${next.title} →`)] : [];
  $("story").replaceChildren(element("h2", {}, `${at + 1}. ${SCENES[at].title}`), element("div", {}, ...SCENES[at].text.map((words) => element("p", {}, words))), ...onward);
}

async function goTo(scene) {
  history.pushState(null, "", `#${sceneHash(scene)}`);
  await readAddress();
}

// ------------------------------------------------------------------------------------------------ hover

function pointAt(event, spec, canvas) {
  const box = canvas.getBoundingClientRect();
  const words = ready() ? spec.panel.at(event.clientX - box.left, event.clientY - box.top, canvas, viewOf()) : null;
  if (words) showTip(words, event.clientX, event.clientY);
  else hideTip();
}

function showTip(words, x, y) {
  const tip = $("tip");
  tip.textContent = words;
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - width - 8))}px`;
  tip.style.top = `${y + 18 + height > innerHeight ? Math.max(8, y - height - 12) : y + 18}px`;
}

function hideTip() {
  $("tip").hidden = true;
}

function helpOf(event) {
  const node = event.target.closest?.("[data-help]");
  const words = node && helpFor(node.dataset.help);
  if (!words) return;
  const box = node.getBoundingClientRect();
  showTip(words, box.left, box.bottom - 12);
}

// ------------------------------------------------------------------------------------------------ keeping

function download(name, blob) {
  const link = element("a", { download: name, href: URL.createObjectURL(blob) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** A picture of the panel with its title above it. */
function savePNG(spec, canvas) {
  if (!ready()) return;
  const { step } = runs[state.view];
  const ratio = canvas.width / canvas.clientWidth;
  const copy = element("canvas", { width: canvas.width, height: canvas.height + 30 * ratio });
  const context = copy.getContext("2d");
  context.fillStyle = style.paper;
  context.fillRect(0, 0, copy.width, copy.height);
  context.fillStyle = style.ink;
  context.font = `600 ${14 * ratio}px system-ui, sans-serif`;
  context.fillText(`${titleOf(spec)}, step ${step}`, 10 * ratio, 20 * ratio);
  context.drawImage(canvas, 0, 30 * ratio);
  copy.toBlob((blob) => download(`scb-${spec.id}-${step}.png`, blob));
}

const keep = {
  async link() {
    writeAddress();
    try {
      await navigator.clipboard.writeText(location.href);
      $("link").textContent = "Copied";
    } catch {
      $("link").textContent = "It is in the address bar";
    }
    setTimeout(() => ($("link").textContent = "Copy link"), 2000);
  },
  csv: () => ready() && download("scb-history.csv", new Blob([historyCSV(runs)], { type: "text/csv" })),
  python: () => pythonFor(state, runs[state.view]?.settled ? runs[state.view].step : null),
};

function refreshPython() {
  if ($("python")) $("python").value = keep.python();
}

const ownData = {
  async use(text, asked) {
    const unit = asked === "guess" ? guessUnit(text) : asked;
    try {
      const { tokens } = encode(text, unit);
      packed = await packText(text);
      state.scene = "";
      story();
      change((next) => {
        next.data = { text, unit };
        next.task.T = Math.min(24, tokens.length - 3);
        next.task.sparsity = Math.min(2, next.task.T);
        next.runs = [{ ...structuredClone(RUN_DEFAULTS), ...OWN_RECIPE }];
        next.view = 0;
      });
      play();
    } catch (error) {
      notice(error.message);
    }
  },
  drop() {
    packed = "";
    state = { ...defaultState(), speed: state.speed };
    story();
    restart();
  },
  kalevala: () => goTo(SCENES.find((scene) => scene.id === "text")),
};
const OWN_RECIPE = { eta: [0.02, 0.02, 0.005], steps: [400, 1600, 0], batchSize: 256, lam: 1e-3, projector: "mu" };

function controls() {
  const transfer = () => intervene({ kind: "transfer", seed: state.task.seed + 1000 + state.events.length });
  const view = (index) => {
    state.view = index;
    worker.postMessage({ type: "view", view: index });
    controls();
    dirty = true;
  };
  drawControls($("controls"), state, { change, keep, transfer, ownData, view });
}

// ------------------------------------------------------------------------------------------------ buttons and keys

const actions = {
  play: () => (playing ? pause() : play()),
  step: () => worker.postMessage({ type: "step" }),
  end: () => worker.postMessage({ type: "play", speed: "full" }),
  restart: () => change(() => {}),
  reseed: () => change((next) => next.runs.forEach((run) => (run.seed += 1))),
};

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  const at = SCENES.findIndex((scene) => scene.id === state.scene);
  const keys = {
    " ": () => !event.target.closest("button, summary") && actions.play(),
    ".": actions.step,
    r: actions.restart,
    "]": () => goTo(SCENES[Math.min(at + 1, SCENES.length - 1)]),
    "[": () => goTo(SCENES[Math.max(at - 1, 0)]),
  };
  if (!keys[event.key]) return;
  if (keys[event.key]() !== false) event.preventDefault();
}

function begin() {
  for (const [id, act] of Object.entries(actions)) $(id).addEventListener("click", act);
  $("scenes").replaceChildren(...SCENES.map((scene, i) => element("li", {}, element("button", { onclick: () => goTo(scene) }, `${i + 1} ${scene.title}`))));
  $("speed").addEventListener("change", (event) => {
    state.speed = event.target.value;
    if (playing) play();
    writeAddress();
  });
  $("log").addEventListener("change", () => (dirty = true));
  addEventListener("keydown", pressed);
  addEventListener("hashchange", () => {
    if (location.hash !== `#${address()}`) readAddress();
  });
  addEventListener("resize", () => {
    if (task) layPanels();
    dirty = true;
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    style = readStyle();
    dirty = true;
  });
  document.addEventListener("pointerover", helpOf);
  document.addEventListener("focusin", helpOf);
  document.addEventListener("pointerout", (event) => event.target.closest?.("[data-help]") && hideTip());
  document.addEventListener("focusout", hideTip);
  readAddress();
  requestAnimationFrame(frame);
}

/** For tests and for the curious: what the page knows. */
globalThis.scbLab = {
  get state() { return structuredClone(state); },
  get task() { return task; },
  get runs() { return runs; },
  get playing() { return playing; },
  get finished() { return over && !playing; },
  get frames() { return { ...frames }; },
  resetFrames() { Object.assign(frames, { count: 0, since: performance.now(), slowest: 0, last: 0 }); },
  link: () => `#${address()}`,
  scenes: SCENES.map((scene) => ({ id: scene.id, title: scene.title, hash: sceneHash(scene) })),
};

begin();
