// The worker: trains in slices, listens between them, and sends a frame whenever the page has drawn the last one.
import { createLab, describe, finished, intervene, snapshot, stepLab } from "./lab.mjs";

const SLICE = 12; // milliseconds of training between two looks at the mailbox

let lab = null;
let playing = false;
let until = Infinity; // pause at this step, or go on from there at the speed `after`
let after = null;
let rate = Infinity; // steps per second
let owed = 0; // steps that are due, at a limited rate
let last = 0;
let drawn = true; // whether the page has drawn the last frame
let sent = []; // rows of each run's history that the page has
let ticket = 0; // of the experiment; frames of an older one are ignored by the page
let busy = false;

const mailbox = new MessageChannel();
mailbox.port1.onmessage = () => work();

function schedule(wait = 0) {
  if (busy) return;
  busy = true;
  if (wait) setTimeout(() => mailbox.port2.postMessage(0), wait);
  else mailbox.port2.postMessage(0);
}

function post(type, rest = {}) {
  self.postMessage({ type, ticket, ...rest });
}

function sendTask() {
  sent = lab.runs.map(() => 0);
  post("task", { task: describe(lab) });
}

/** After a transfer: what the page has not yet seen of the runs before it, and the new task. */
function sendTransfer() {
  const late = lab.runs.map((run, i) => {
    const { history, from } = run.before.at(-1);
    return { from, rows: Object.fromEntries(Object.entries(history).map(([name, values]) => [name, values.slice(sent[i])])) };
  });
  post("late", { late });
  sendTask();
}

function sendFrame() {
  const runs = lab.runs.map((run, i) => {
    const frame = snapshot(lab, i, sent[i]);
    sent[i] = run.history.step.length;
    return frame;
  });
  drawn = false;
  post("frame", { step: lab.step, runs, playing, finished: finished(lab) });
}

function work() {
  busy = false;
  if (!lab || !playing) return;
  try {
    train();
  } catch (error) {
    playing = false;
    post("error", { message: error.message });
  }
}

function train() {
  const begin = performance.now();
  if (Number.isFinite(rate)) {
    owed = Math.min(owed + ((begin - last) / 1000) * rate, Math.max(1, rate / 10));
    last = begin;
  }
  while (lab.step < until && !finished(lab) && (!Number.isFinite(rate) || owed >= 1)) {
    const phase = lab.phase;
    stepLab(lab);
    owed -= 1;
    if (lab.phase !== phase) sendTransfer();
    if (performance.now() - begin > SLICE) break;
  }
  if (lab.step >= until && after && !finished(lab)) go(Infinity, after);
  if (lab.step >= until || finished(lab)) {
    playing = false;
    sendFrame();
    return;
  }
  if (drawn) sendFrame();
  schedule(Number.isFinite(rate) ? 8 : 0);
}

function go(target, speed, then = null) {
  until = target;
  after = then;
  rate = speed === "full" ? Infinity : Number(speed);
  owed = 1;
  last = performance.now();
  playing = !finished(lab) && lab.step < until;
  if (playing) schedule();
  else sendFrame();
}

const commands = {
  start(message) {
    ticket = message.ticket;
    playing = false;
    drawn = true; // the page may have thrown the last frame of another experiment away
    lab = null; // a state that cannot be built leaves none
    lab = createLab(message.state);
    sent = lab.runs.map(() => 0);
    if (lab.phase > 0) sendTransfer();
    else sendTask();
    if (message.until > 0) go(message.until, "full", message.play ? message.state.speed : null);
    else if (message.play) go(Infinity, message.state.speed);
    else sendFrame();
  },
  play: (message) => go(message.until ?? Infinity, message.speed),
  pause() {
    playing = false;
    sendFrame();
  },
  step() {
    playing = false;
    const phase = lab.phase;
    if (!finished(lab)) stepLab(lab);
    if (lab.phase !== phase) sendTransfer();
    sendFrame();
  },
  intervene(message) {
    const phase = lab.phase;
    const event = intervene(lab, message.event);
    post("happened", { event });
    if (lab.phase !== phase) sendTransfer();
    if (message.play) go(Infinity, message.speed);
    else sendFrame();
  },
  drawn() {
    drawn = true;
  },
};

self.onmessage = ({ data }) => {
  if (!lab && data.type !== "start") return;
  try {
    commands[data.type](data);
  } catch (error) {
    playing = false;
    post("error", { message: error.message });
  }
};
