// What the page shows of an experiment: the panels, laid out and drawn, and a line that says where it stands.
// `page` is { state, task, runs, style, playing, over, tape }; panels are given it as it stands, or as it stood at the cursor (player.mjs).
import { curve } from "./curves.mjs";
import { element } from "./fields.mjs";
import { heads, singular } from "./headpanels.mjs";
import { HELP } from "./help.mjs";
import { lags } from "./lags.mjs";
import { attention, matrices, stacked } from "./panels.mjs";
import { plane } from "./plane.mjs";
import { latest, shown } from "./player.mjs";
import { short } from "./plots.mjs";
import { sample } from "./sample.mjs";
import { hideTip, say, showTip } from "./tips.mjs";

// shape: how many cells of the grid; truth: only where it is known; own: the title where it is not; dom: not a canvas
const curvePanel = (id, title, rest = {}) => ({ id, title, panel: curve(id, HELP[id]), truth: true, ...rest });
const PANELS = [
  {
    id: "sample",
    title: "One sample, step by step",
    panel: sample,
    truth: true,
    shape: "full",
    dom: true,
    fits: (task) => task.samples.length > 0,
  },
  {
    id: "attention",
    title: "Attention A and the truth Q",
    own: "Attention A",
    legend: "○ truth  ● learned  ▒ the rest",
    panel: attention,
    shape: "wide",
  },
  {
    id: "heads",
    title: "What each head attends to",
    legend: "○ true weights; colour: the pattern that a position belongs to",
    panel: heads,
    shape: "full",
    heads: true,
  },
  {
    id: "singular",
    title: "Singular values as they are learned",
    legend: "dotted: overlap of the less clear head",
    panel: singular,
    shape: "full",
    heads: true,
  },
  {
    id: "lags",
    title: "Which lags matter, and which one explains each symbol",
    panel: lags,
    dom: true,
    shape: "half",
    fits: (task) => task.names,
  },
  { id: "matrices", title: "V beside P", own: "V", panel: matrices },
  { id: "plane", title: "Signal plane", legend: "thin line: infinite batch", panel: plane, truth: true, shape: "tall" },
  curvePanel("dist_A", "‖A − Q‖: distance to Q"),
  curvePanel("dist_V", "‖V − P‖: distance to P"),
  curvePanel("delta_A", "‖Δ_A‖: noise in A"),
  curvePanel("delta_V", "‖Δ_V‖: noise in V"),
  curvePanel("dist_A_star", "‖A* − Q‖, normalised", { shape: "half" }),
  curvePanel("loss", "Loss", { truth: false, shape: "half" }),
];
export const PANEL_NAMES = PANELS.map(({ id }) => id);

const nodeOf = (spec) => document.getElementById(`canvas-${spec.id}`);
function possible(task) {
  const forHeads = (spec) => (task.heads > 1 ? spec.heads || spec.id === "loss" : !spec.heads);
  return PANELS.filter((spec) => (task.truth || !spec.truth) && forHeads(spec) && (!spec.fits || spec.fits(task)));
}
const titleOf = (spec, task) => (task.truth ? spec.title : (spec.own ?? spec.title));
const unfolded = () => document.getElementById("more").open;

/** Whether there is something to draw: the first frame of an experiment has come, with what is shown of the run in view. */
export function ready({ state, task, runs }) {
  const run = runs[state.view];
  return Boolean(task && run?.V && run.attention && run.V.length === task.heads * task.N ** 2);
}

/** Put the panels on the page: those that are `asked` for (all if null), and the others behind a fold; each as high as it needs to be. */
export function layPanels(page, asked) {
  const all = possible(page.task);
  const front = asked ? asked.flatMap((words) => asShaped(words, all)) : all;
  const back = all.filter((spec) => !front.some(({ id }) => id === spec.id));
  for (const [id, specs] of Object.entries({ panels: front, "more-panels": back })) {
    const root = document.getElementById(id);
    const ids = specs.map((spec) => `${titleOf(spec, page.task)} ${spec.shape}`).join();
    if (root.dataset.ids === ids) continue;
    root.dataset.ids = ids;
    root.replaceChildren(...specs.map((spec) => figure(spec, page)));
  }
  document.getElementById("more").hidden = back.length === 0;
  page.specs = [...front, ...back];
  page.front = front.length;
  for (const spec of page.specs) if (!spec.dom) nodeOf(spec).style.height = `${Math.round(heightOf(spec, page.task))}px`;
}

/** The panel that “loss” or “loss:wide” asks for, if the task has it. */
function asShaped(words, specs) {
  const [id, shape] = words.split(":");
  return specs.filter((spec) => spec.id === id).map((spec) => ({ ...spec, shape: shape ?? spec.shape }));
}

function heightOf(spec, task) {
  const narrow = innerWidth < 820;
  if (spec.id === "plane") return narrow ? 320 : 446;
  if (spec.id === "matrices") {
    const width = nodeOf(spec).clientWidth - 30;
    if (stacked(task)) return 2 * width + 72;
    return Math.min(task.truth ? 420 : 280, width / (task.truth ? 2 : 1) + 36);
  }
  if (spec.id === "heads") return 34 + task.N * (narrow ? 70 : 84);
  if (spec.id !== "attention") return 190;
  const strips = task.N > 6 && !narrow ? Math.ceil(task.N / 2) : task.N;
  if (stacked(task)) return Math.max(heightOf({ id: "matrices" }, task), strips * 78 + 20);
  return Math.max(task.truth ? 250 : 280, strips * (narrow ? 66 : 78) + 20);
}

function figure(spec, page) {
  const title = titleOf(spec, page.task);
  const heading = element("h2", { id: `title-${spec.id}` }, title);
  const help = element("button", { "data-help": spec.id, "aria-label": `About “${title}”` }, "?");
  const legend = page.task.truth && spec.legend ? [element("span", { class: "hint" }, spec.legend)] : [];
  const attributes = { class: `panel ${spec.shape ?? ""}`, id: `panel-${spec.id}`, "aria-labelledby": heading.id };
  if (spec.dom) {
    const body = element("div", { id: `canvas-${spec.id}` });
    return element("figure", attributes, element("figcaption", {}, heading, ...legend, help), body);
  }
  const canvas = element("canvas", { id: `canvas-${spec.id}`, role: "img", tabindex: "0" });
  canvas.addEventListener("pointermove", (event) => pointAt(event, spec, canvas, page));
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("keydown", (event) => walk(event, spec, canvas, page));
  canvas.addEventListener("blur", hideTip);
  const png = element("button", { "aria-label": `PNG of ${title}`, onclick: () => savePNG(spec, canvas, page) }, "PNG");
  return element("figure", attributes, element("figcaption", {}, heading, ...legend, help, png), canvas);
}

function pointAt(event, spec, canvas, page) {
  const box = canvas.getBoundingClientRect();
  const words = ready(page) ? spec.panel.at(event.clientX - box.left, event.clientY - box.top, canvas, shown(page)) : null;
  if (words) showTip(words, event.clientX, event.clientY);
  else hideTip();
}

/** Arrow keys go from one value of a picture to the next; each is shown and said. */
function walk(event, spec, canvas, page) {
  const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!move || !ready(page)) return;
  event.preventDefault();
  const view = shown(page);
  const stops = spec.panel.stops(canvas, view);
  const next = (Number(canvas.dataset.stop ?? (move > 0 ? -1 : stops.length)) + move + stops.length) % stops.length;
  canvas.dataset.stop = next;
  const [x, y] = stops[next];
  const words = spec.panel.at(x, y, canvas, view);
  const box = canvas.getBoundingClientRect();
  showTip(words, box.left + x, box.top + y);
  say(words);
}

/** Draw everything that is not folded away, and say it in words for those who do not see it. */
export function drawPanels(page) {
  const view = shown(page);
  const run = view.runs[view.state.view];
  const drawn = unfolded() ? page.specs : page.specs.slice(0, page.front);
  for (const spec of drawn) {
    const node = nodeOf(spec);
    spec.panel.draw(node, view);
    if (!spec.dom)
      node.setAttribute("aria-label", `${titleOf(spec, page.task)}. ${summary(spec.id, run)} The arrow keys read out values.`);
  }
}

function summary(id, run) {
  const value = latest(run, id);
  if (Number.isFinite(value)) return `The value is ${short(value)} at step ${run.step}.`;
  if (run.history.sigma_1?.length && Number.isFinite(latest(run, "sigma_1")))
    return `σ₁ = ${short(latest(run, "sigma_1"))} and σ₂ = ${short(latest(run, "sigma_2"))} at step ${run.step}.`;
  return `α_V = ${short(latest(run, "alpha_V"))} and α_A = ${short(latest(run, "alpha_A"))} at step ${run.step}.`;
}

/** Where the run in view stands, in one line. */
export function statusLine(page) {
  const { state, task, runs, over } = shown(page);
  const run = runs[state.view];
  const parts = [`Step ${run.step.toLocaleString("en")}`];
  if (run.row === undefined) parts.push(`${run.samples.toLocaleString("en")} samples`);
  if (task.heads > 1)
    parts.push(
      `σ₁ ${short(latest(run, "sigma_1"))}`,
      `σ₂ ${short(latest(run, "sigma_2"))}`,
      `overlap ${short(latest(run, "overlap"))}`,
    );
  else if (task.truth) parts.push(`α_V ${short(latest(run, "alpha_V"))}`, `α_A ${short(latest(run, "alpha_A"))}`);
  else parts.push(`loss ${short(latest(run, "loss"))}`);
  return over ? `Finished: ${outcome(run, task)} ${parts.join(" · ")}` : parts.join(" · ");
}

/** How a run has ended, in a sentence. */
export function outcome(run, task) {
  if (run.diverged) return `the run diverged at step ${run.diverged}.`;
  const why = run.settled ? "nothing changes any more" : "all stages are done";
  if (!task.truth) return `${why}.`;
  if (task.heads > 1)
    return `${why}; ${latest(run, "overlap") > 0.95 ? "each head has one pattern." : "the heads share the patterns."}`;
  if (latest(run, "alpha_A") < -0.5) return `${why}; this is the mirror image.`;
  const [A, V] = [latest(run, "dist_A"), latest(run, "dist_V")];
  return `${why}; A is ${short(Number(A.toPrecision(2)))} away from Q, and V is ${short(Number(V.toPrecision(2)))} away from P.`;
}

export function download(name, blob) {
  const link = element("a", { download: name, href: URL.createObjectURL(blob) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** A picture of the panel with its title above it. */
function savePNG(spec, canvas, page) {
  if (!ready(page)) return;
  const { step } = page.runs[page.state.view];
  const ratio = canvas.width / canvas.clientWidth;
  const copy = element("canvas", { width: canvas.width, height: canvas.height + 30 * ratio });
  const context = copy.getContext("2d");
  context.fillStyle = page.style.paper;
  context.fillRect(0, 0, copy.width, copy.height);
  context.fillStyle = page.style.ink;
  context.font = `600 ${14 * ratio}px system-ui, sans-serif`;
  context.fillText(`${titleOf(spec, page.task)}, step ${step}`, 10 * ratio, 20 * ratio);
  context.drawImage(canvas, 0, 30 * ratio);
  copy.toBlob((blob) => download(`scb-${spec.id}-${step}.png`, blob));
}
