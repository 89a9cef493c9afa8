// The page: keeps the state, talks to the worker, draws, and writes the address.
import { drawControls, element } from "./controls.mjs";
import { encode, guessUnit } from "./data.mjs";
import { historyCSV, pythonFor } from "./exports.mjs";
import { readStyle } from "./plots.mjs";
import { SCENES, sceneHash } from "./scenes.mjs";
import { RUN_DEFAULTS, defaultState, formatState, packText, parseState, unpackText } from "./state.mjs";
import { listenForHelp, notice } from "./tips.mjs";
import { download, drawPanels, layPanels, ready, statusLine } from "./view.mjs";

const $ = (id) => document.getElementById(id);
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const OWN_RECIPE = { eta: [0.02, 0.02, 0.005], steps: [400, 1600, 0], batchSize: 256, lam: 1e-3, projector: "mu" };

const page = {
  state: defaultState(),
  packed: "", // own data, as the address has it
  task: null,
  runs: [],
  style: readStyle(),
  log: false, // whether curves are drawn in powers of ten
  playing: false,
  over: false, // whether all runs have ended
  get finished() {
    return this.over && !this.playing;
  },
};
let ticket = 0; // of the experiment; what an older one still sends is ignored
let dirty = false; // whether there is something new to draw
let lastDrawn = 0;

const worker = new Worker(URL.createObjectURL(new Blob([$("worker-source").textContent], { type: "text/javascript" })));

// ------------------------------------------------------------------------------------------------ state and address

function address() {
  return formatState({ ...page.state, play: false }, page.packed);
}

function writeAddress() {
  const hash = `#${address()}`;
  if (hash !== location.hash) history.replaceState(null, "", hash);
}

/** Edit the settings: the experiment begins anew. */
function change(edit) {
  const was = page.playing;
  const { state } = page;
  edit(state);
  state.step = 0;
  state.events = [];
  state.view = Math.min(state.view, state.runs.length - 1);
  state.task.sparsity = Math.min(Math.max(state.task.sparsity, 1), state.task.T);
  restart(was);
}

function restart(play = false) {
  ticket++;
  Object.assign(page, { runs: [], task: null, over: false, playing: play });
  notice(null);
  worker.postMessage({ type: "start", ticket, state: page.state, play });
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
  page.state = read.state;
  page.packed = "";
  if (read.packed !== null) {
    try {
      const text = await unpackText(read.packed);
      encode(text, read.unit);
      page.state.data = { text, unit: read.unit };
      page.packed = read.packed;
    } catch {
      read.problems.push("the data in the address are broken");
    }
  }
  const play = page.state.play;
  page.state.play = false;
  $("speed").value = page.state.speed;
  story();
  restart(play);
  if (read.problems.length) notice(`In the address: ${read.problems.join("; ")}.`);
}

// ------------------------------------------------------------------------------------------------ the worker

const freshRun = () => ({ history: {}, V: null, attention: null, step: 0, samples: 0, from: 0 });

const incoming = {
  task(message) {
    page.task = message.task;
    if (page.runs.length === 0) page.runs = message.task.stages.map(freshRun);
    layPanels($("panels"), page);
  },
  late(message) {
    if (page.runs.length === 0) page.runs = message.late.map(freshRun);
    message.late.forEach((part, i) => append(page.runs[i], part));
  },
  frame(message) {
    message.runs.forEach((frame, i) => absorb(page.runs[i], frame));
    page.playing = message.playing;
    page.over = message.finished;
    page.state.step = message.step;
    if (!page.playing) {
      writeAddress();
      if ($("python")) $("python").value = keep.python();
    }
    announce();
    dirty = true;
  },
  happened(message) {
    page.state.events.push(message.event);
  },
  error(message) {
    page.playing = false;
    const empty = !$("panels").childElementCount; // an address whose task cannot be made
    if (empty) {
      page.state = defaultState();
      story();
      restart();
    }
    notice(`${message.message}.${empty ? " The usual task is shown instead." : ""}`);
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
  if (page.over) return;
  page.playing = true;
  worker.postMessage({ type: "play", speed: page.state.speed });
}

function intervene(event) {
  worker.postMessage({ type: "intervene", event, play: page.playing || event.kind === "transfer", speed: page.state.speed });
}

// ------------------------------------------------------------------------------------------------ drawing

function draw() {
  if (!ready(page)) return;
  drawPanels(page);
  $("status").textContent = statusLine(page);
  $("play").textContent = page.playing ? "❚❚ Pause" : "▶ Run";
  for (const id of ["play", "step", "end"]) $(id).disabled = page.over && !page.playing;
}

function frame(now) {
  const wait = calm.matches && page.playing ? 500 : 0; // little motion: two pictures a second
  if (dirty && now - lastDrawn >= wait) {
    dirty = false;
    lastDrawn = now;
    draw();
    worker.postMessage({ type: "drawn" });
  }
  requestAnimationFrame(frame);
}

// ------------------------------------------------------------------------------------------------ what is said

/** Tell of the mirror image, once it is clear, and of a run that diverged. */
function announce() {
  const run = page.runs[page.state.view];
  if (!run) return;
  if (run.diverged) {
    notice(`The run diverged at step ${run.diverged}: smaller step sizes or larger batches are needed.`);
    return;
  }
  const mirrored = run.history.alpha_V?.at(-1) < -0.04 && run.history.alpha_A?.at(-1) < -0.04;
  const said = $("notice").dataset.kind === "mirror";
  if (mirrored && !said) {
    const flip = element("button", { id: "flip", onclick: () => intervene({ kind: "flip", run: page.state.view }) }, "Flip it");
    const words =
      "This is the mirror image: α_V and α_A are both negative. It computes the same function up to O(1/T), and noise chose it.";
    notice(words, flip);
  }
  if (!mirrored && said) notice(null);
}

function story() {
  const at = SCENES.findIndex((scene) => scene.id === page.state.scene);
  const buttons = [...$("scenes").querySelectorAll("button")];
  buttons.forEach((button, i) => button.setAttribute("aria-current", i === at ? "step" : "false"));
  $("story").hidden = at < 0;
  if (at < 0) return;
  $("scenes").scrollLeft = buttons[at].offsetLeft - 12; // on a narrow page the list is wider than the page
  const next = SCENES[at + 1];
  const onward = next ? [element("button", { id: "next-scene", onclick: () => goTo(next) }, `Next: ${next.title} →`)] : [];
  const paragraphs = SCENES[at].text.map((words) => element("p", {}, words));
  const picture = SCENES[at].picture ? [element("figure", {}, $("picture").content.cloneNode(true))] : [];
  const body = element("div", {}, ...picture, ...paragraphs);
  $("story").replaceChildren(element("h2", {}, `${at + 1}. ${SCENES[at].title}`), body, ...onward);
}

async function goTo(scene) {
  history.pushState(null, "", `#${sceneHash(scene)}`);
  await readAddress();
}

// ------------------------------------------------------------------------------------------------ settings and what one keeps

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
  csv: () => ready(page) && download("scb-history.csv", new Blob([historyCSV(page.runs)], { type: "text/csv" })),
  python() {
    const run = page.runs[page.state.view];
    return pythonFor(page.state, run?.settled ? run.step : undefined);
  },
};

const ownData = {
  async use(text, asked) {
    const unit = asked === "guess" ? guessUnit(text) : asked;
    try {
      const { tokens } = encode(text, unit);
      page.packed = await packText(text);
      page.state.scene = "";
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
      notice(`${error.message}.`);
    }
  },
  drop() {
    page.packed = "";
    page.state = { ...defaultState(), speed: page.state.speed };
    story();
    restart();
  },
  kalevala: () => goTo(SCENES.find((scene) => scene.id === "text")),
};

function controls() {
  const { state } = page;
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
  play: () => (page.playing ? worker.postMessage({ type: "pause" }) : play()),
  step: () => worker.postMessage({ type: "step" }),
  end: () => worker.postMessage({ type: "play", speed: "full" }),
  restart: () => change(() => {}),
  reseed: () => change((next) => next.runs.forEach((run) => (run.seed += 1))),
};

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  const at = SCENES.findIndex((scene) => scene.id === page.state.scene);
  const keys = {
    " ": () => !event.target.closest("button, summary") && actions.play(),
    ".": actions.step,
    r: actions.restart,
    "]": () => goTo(SCENES[Math.min(at + 1, SCENES.length - 1)]),
    "[": () => goTo(SCENES[Math.max(at - 1, 0)]),
  };
  if (keys[event.key] && keys[event.key]() !== false) event.preventDefault();
}

function begin() {
  for (const [id, act] of Object.entries(actions)) $(id).addEventListener("click", act);
  const buttons = SCENES.map((scene, i) => element("button", { onclick: () => goTo(scene) }, `${i + 1} ${scene.title}`));
  $("scenes").replaceChildren(...buttons.map((button) => element("li", {}, button)));
  $("speed").addEventListener("change", (event) => {
    page.state.speed = event.target.value;
    if (page.playing) play();
    writeAddress();
  });
  $("log").addEventListener("change", (event) => {
    page.log = event.target.checked;
    dirty = true;
  });
  addEventListener("keydown", pressed);
  addEventListener("hashchange", () => {
    if (location.hash !== `#${address()}`) readAddress();
  });
  addEventListener("resize", () => {
    if (page.task) layPanels($("panels"), page);
    dirty = true;
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    page.style = readStyle();
    dirty = true;
  });
  listenForHelp();
  readAddress();
  requestAnimationFrame(frame);
}

/** For tests and for the curious: what the page knows, as it stands. */
const scenes = SCENES.map((scene) => ({ id: scene.id, title: scene.title, hash: sceneHash(scene) }));
globalThis.scbLab = Object.assign(Object.create(page), { link: () => `#${address()}`, scenes });

begin();
