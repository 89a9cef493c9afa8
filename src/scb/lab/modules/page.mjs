// The page: keeps the state, talks to the worker, draws, and writes the address.
import { drawControls } from "./controls.mjs";
import { encode, guessUnit, tooShort } from "./data.mjs";
import { embedded, listenForTheme, reportHeight, setTheme, whenSeen } from "./embed.mjs";
import { historyCSV, pythonFor } from "./exports.mjs";
import { absorb, append, createTape, freshRun, playTape, record, seek } from "./player.mjs";
import { readStyle } from "./plots.mjs";
import { SCENES, meantBy, sceneHash } from "./scenes.mjs";
import { defaultState, formatState, packText, parseState, unpackText, useData } from "./state.mjs";
import { announce, listScenes, sceneAt, tell, writeLegend } from "./story.mjs";
import { listenForHelp, notice, say } from "./tips.mjs";
import { download, drawPanels, layPanels, ready, statusLine } from "./view.mjs";

const $ = (id) => document.getElementById(id);
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const WAIT = 120; // milliseconds between two restarts while a slider is dragged

const page = {
  state: defaultState(),
  packed: "", // own data, as the address has it
  task: null,
  runs: [],
  tape: createTape(),
  style: null,
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
let lastFrame = 0;
let pending = 0; // a restart that is due

const worker = new Worker(URL.createObjectURL(new Blob([$("worker-source").textContent], { type: "text/javascript" })));

// ------------------------------------------------------------------------------------------------ state and address

function address(state = page.state) {
  return formatState({ ...state, play: false }, page.packed);
}

function writeAddress() {
  const hash = `#${address()}`;
  if (hash !== location.hash) history.replaceState(null, "", hash);
  $("whole").href = `#${address({ ...page.state, embed: "", theme: "" })}`;
}

/** Edit the settings: the experiment is done again, up to the step where it stood. While a slider is dragged (`live`), not too often. */
function change(edit, live = false, again = true) {
  const { state } = page;
  edit(state);
  state.events = [];
  state.view = Math.min(state.view, state.runs.length - 1);
  state.task.sparsity = Math.min(Math.max(state.task.sparsity, 1), state.task.T);
  const play = page.playing;
  const until = again ? (page.over ? Infinity : state.step) : 0;
  clearTimeout(pending);
  if (live) {
    controls();
    pending = setTimeout(() => restart({ play, until }), WAIT);
  } else restart({ play, until });
}

/** Begin the experiment of the state: at full speed `until` a step, and on from there if it is to `play`. */
function restart({ play = false, until = page.state.step } = {}) {
  ticket++;
  Object.assign(page, { runs: [], task: null, tape: createTape(), over: false, playing: play });
  notice(null);
  worker.postMessage({ type: "start", ticket, state: page.state, play, until });
  controls();
  writeLegend(page);
  writeAddress();
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
  document.documentElement.classList.toggle("embed", embedded(page.state) !== null);
  $("whole").hidden = !embedded(page.state);
  theme(page.state.theme);
  tell(page.state, goTo);
  restart({ play: play && !embedded(page.state) });
  if (play && embedded(page.state)) whenSeen(go);
  if (read.problems.length) notice(`In the address: ${read.problems.join("; ")}.`);
}

async function goTo(scene) {
  history.pushState(null, "", `#${sceneHash(scene)}`);
  await readAddress();
  $("scene-title").focus(); // the button that was pressed is gone
}

// ------------------------------------------------------------------------------------------------ the worker

const incoming = {
  task(message) {
    page.task = message.task;
    if (page.runs.length === 0) page.runs = message.task.stages.map(freshRun);
    lay();
  },
  late(message) {
    if (page.runs.length === 0) page.runs = message.late.map(freshRun);
    message.late.forEach((part, i) => append(page.runs[i], part));
  },
  frame(message) {
    message.runs.forEach((frame, i) => absorb(page.runs[i], frame));
    record(page.tape, message.step, message.runs);
    page.playing = message.playing;
    if (message.finished && !page.over && ready(page)) say(statusLine({ ...page, over: true }));
    page.over = message.finished;
    page.state.step = message.step;
    if (!page.playing) {
      writeAddress();
      if ($("python")) $("python").value = keep.python();
    }
    announce(page, () => intervene({ kind: "flip", run: page.state.view }));
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
      tell(page.state, goTo);
      restart();
    }
    notice(`${message.message}.${empty ? " The default task is shown instead." : ""}`);
  },
};

worker.onmessage = ({ data }) => {
  if (data.ticket === ticket) incoming[data.type](data);
};
worker.onerror = (event) => notice(`The worker failed: ${event.message}`);

function go() {
  if (page.over) return;
  page.playing = true;
  worker.postMessage({ type: "play", speed: page.state.speed });
}

function intervene(event) {
  page.tape.cursor = null;
  worker.postMessage({ type: "intervene", event, play: page.playing || event.kind === "transfer", speed: page.state.speed });
}

// ------------------------------------------------------------------------------------------------ drawing

const lay = () => layPanels(page, embedded(page.state)?.panels ?? SCENES[sceneAt(page.state)]?.panels ?? null);

function draw() {
  if (!ready(page)) return;
  drawPanels(page);
  const { tape, state, playing, over } = page;
  const going = playing || tape.replaying;
  $("status").textContent = statusLine(page);
  $("play").textContent = going ? "❚❚ Pause" : over && tape.cursor === null ? "↻ Replay" : "▶ Run";
  for (const id of ["step", "end"]) $(id).disabled = over && !playing;
  const scrub = $("scrub");
  scrub.max = state.step;
  scrub.value = tape.cursor ?? state.step;
  scrub.setAttribute("aria-valuetext", `step ${Math.round(tape.cursor ?? state.step)} of ${state.step}`);
}

function frame(now) {
  if (page.tape.replaying) {
    if (playTape(page.tape, (now - lastFrame) / 1000, page.state.speed, page.state.step)) go(); // at its end the run goes on
    dirty = true;
  }
  lastFrame = now;
  const wait = calm.matches && (page.playing || page.tape.replaying) ? 500 : 0; // little motion: two pictures a second
  if (dirty && now - lastDrawn >= wait) {
    dirty = false;
    lastDrawn = now;
    draw();
    worker.postMessage({ type: "drawn" });
  }
  requestAnimationFrame(frame);
}

function theme(asked) {
  setTheme(asked);
  page.style = readStyle();
  dirty = true;
}

// ------------------------------------------------------------------------------------------------ settings, and what can be kept

const keep = {
  async link() {
    writeAddress();
    try {
      await navigator.clipboard.writeText(location.href);
      $("link").textContent = "Copied";
    } catch {
      $("link").textContent = "The link is in the address bar";
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
      if (tooShort(tokens.length)) throw new Error(tooShort(tokens.length));
      page.packed = await packText(text);
      page.state.scene = "";
      tell(page.state, goTo);
      change((next) => useData(next, { text, unit }, tokens.length), false, false);
      go();
    } catch (error) {
      notice(`${error.message}.`);
    }
  },
  drop() {
    page.packed = "";
    page.state = { ...defaultState(), speed: page.state.speed };
    tell(page.state, goTo);
    restart();
  },
  kalevala: () => goTo(SCENES.find((scene) => scene.id === "text")),
};

function view(index) {
  page.state.view = index;
  controls();
  writeAddress();
  dirty = true;
}

function controls() {
  const { state } = page;
  const transfer = () => intervene({ kind: "transfer", seed: page.state.task.seed + 1000 + page.state.events.length });
  const turn = () => intervene({ kind: "turn", run: page.state.view });
  const inside = embedded(state);
  const asked = inside?.fields ?? SCENES[sceneAt(state)]?.fields ?? null;
  drawControls($("controls"), page, { change, keep, transfer, turn, ownData, view }, asked, !inside);
}

// ------------------------------------------------------------------------------------------------ buttons and keys

function pause() {
  page.tape.replaying = false;
  page.playing = false;
  worker.postMessage({ type: "pause" });
  dirty = true;
}

const actions = {
  play() {
    if (page.playing || page.tape.replaying) return pause();
    if (page.over && page.tape.cursor === null) page.tape.cursor = 0;
    if (page.tape.cursor === null) go();
    else page.tape.replaying = true;
  },
  step() {
    page.tape.cursor = null;
    worker.postMessage({ type: "step" });
  },
  end() {
    page.tape.cursor = null;
    worker.postMessage({ type: "play", speed: "full" });
  },
  restart: () => change((state) => (state.step = 0), false, false),
  reseed: () => change((state) => state.runs.forEach((run) => (run.seed += 1)), false, false),
};

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  const at = sceneAt(page.state);
  const keys = {
    " ": () => !event.target.closest("button, summary") && actions.play(),
    ".": actions.step,
    r: actions.restart,
    "]": () => goTo(SCENES[Math.min(at + 1, SCENES.length - 1)]),
    "[": () => goTo(SCENES[Math.max(at - 1, 0)]),
  };
  if (keys[event.key] && keys[event.key]() !== false) event.preventDefault();
}

function listen() {
  for (const [id, act] of Object.entries(actions)) $(id).addEventListener("click", act);
  $("speed").addEventListener("change", (event) => {
    page.state.speed = event.target.value;
    if (page.playing) go();
    writeAddress();
  });
  $("scrub").addEventListener("input", (event) => {
    if (page.playing || page.tape.replaying) pause();
    seek(page.tape, Number(event.target.value), page.state.step);
    dirty = true;
  });
  $("log").addEventListener("change", (event) => {
    page.log = event.target.checked;
    dirty = true;
  });
  $("more").addEventListener("toggle", () => {
    if (page.task) lay();
    dirty = true;
  });
  addEventListener("keydown", pressed);
  addEventListener("hashchange", () => {
    if (location.hash !== `#${address()}`) readAddress();
  });
  addEventListener("resize", () => {
    if (page.task) lay();
    dirty = true;
  });
  listenForTheme((asked) => theme(asked || page.state.theme));
  listenForHelp();
}

/** For tests and for the curious: what the page knows, as it stands. */
const scenes = SCENES.map((scene) => ({ id: scene.id, title: scene.title, hash: sceneHash(scene) }));
globalThis.scbLab = Object.assign(Object.create(page), { link: () => `#${address()}`, scenes });

listen();
listScenes(goTo);
reportHeight();
readAddress();
requestAnimationFrame(frame);
