// What the page shows of an experiment: the panels, laid out and drawn; the line of its state; pictures to keep.
// `page` is { state, task, runs, style, playing, over }.
import { element } from "./controls.mjs";
import { curve } from "./curves.mjs";
import { HELP } from "./help.mjs";
import { attention, matrices, plane, stacked } from "./panels.mjs";
import { short } from "./plots.mjs";
import { hideTip, showTip } from "./tips.mjs";

// shape: how many cells of the grid; truth: only where it is known; own: the title where it is not
const curvePanel = (id, title, rest = {}) => ({ id, title, panel: curve(id, HELP[id]), truth: true, ...rest });
const PANELS = [
  {
    id: "attention",
    title: "Attention A and the truth Q",
    own: "Attention A",
    legend: "○ truth  ● learned  ▒ the rest",
    panel: attention,
    shape: "wide",
  },
  { id: "matrices", title: "V beside P", own: "V", panel: matrices },
  { id: "plane", title: "Signals and flow", legend: "thin: infinite batch", panel: plane, truth: true, shape: "tall" },
  curvePanel("dist_A", "‖A − Q‖"),
  curvePanel("dist_V", "‖V − P‖"),
  curvePanel("delta_A", "‖Δ_A‖: noise in A"),
  curvePanel("delta_V", "‖Δ_V‖: noise in V"),
  curvePanel("dist_A_star", "‖A* − Q‖, normalised", { shape: "half" }),
  curvePanel("loss", "Loss", { truth: false, shape: "half" }),
];

const canvasOf = (spec) => document.getElementById(`canvas-${spec.id}`);
const shownPanels = (task) => PANELS.filter((spec) => task.truth || !spec.truth);
const titleOf = (spec, task) => (task.truth ? spec.title : (spec.own ?? spec.title));

/** Whether there is something to draw: the first frame of an experiment has come, with what is shown of the run in view. */
export function ready({ state, task, runs }) {
  const run = runs[state.view];
  return Boolean(task && run?.V && run.attention && run.V.length === task.N ** 2);
}

/** Put the panels that the task asks for on the page, each as high as it needs to be. */
export function layPanels(root, page) {
  const { task } = page;
  const shown = shownPanels(task);
  const ids = shown.map((spec) => spec.id).join() + (task.names ? ",lags" : "");
  if (root.dataset.ids !== ids) {
    root.dataset.ids = ids;
    root.replaceChildren(...shown.map((spec) => figure(spec, page)), ...(task.names ? [lagsFigure()] : []));
  }
  for (const spec of shown) canvasOf(spec).style.height = `${Math.round(heightOf(spec, task))}px`;
}

function heightOf(spec, task) {
  const narrow = innerWidth < 760;
  if (spec.id === "plane") return narrow ? 320 : 446;
  if (spec.id === "matrices") {
    const width = canvasOf(spec).clientWidth - 30;
    if (stacked(task)) return 2 * width + 72;
    return Math.min(task.truth ? 420 : 280, width / (task.truth ? 2 : 1) + 36);
  }
  if (spec.id !== "attention") return 190;
  const strips = task.N > 6 && !narrow ? Math.ceil(task.N / 2) : task.N;
  if (stacked(task)) return Math.max(heightOf({ id: "matrices" }, task), strips * 78 + 20);
  return Math.max(task.truth ? 250 : 280, strips * (narrow ? 66 : 78) + 20);
}

function figure(spec, page) {
  const title = titleOf(spec, page.task);
  const canvas = element("canvas", { id: `canvas-${spec.id}`, role: "img", tabindex: "0" });
  canvas.addEventListener("pointermove", (event) => pointAt(event, spec, canvas, page));
  canvas.addEventListener("pointerleave", hideTip);
  const png = element("button", { "aria-label": `PNG of ${title}`, onclick: () => savePNG(spec, canvas, page) }, "PNG");
  const legend = page.task.truth && spec.legend ? [element("span", { class: "hint" }, spec.legend)] : [];
  const caption = element("figcaption", {}, element("h2", { "data-help": spec.id, tabindex: "0" }, title), ...legend, png);
  return element("figure", { class: `panel ${spec.shape ?? ""}`, id: `panel-${spec.id}` }, caption, canvas);
}

function lagsFigure() {
  const caption = element("figcaption", {}, element("h2", { "data-help": "lags", tabindex: "0" }, "Which lags light up"));
  return element("figure", { class: "panel half", id: "panel-lags" }, caption, element("table", { id: "lags" }));
}

function pointAt(event, spec, canvas, page) {
  const box = canvas.getBoundingClientRect();
  const words = ready(page) ? spec.panel.at(event.clientX - box.left, event.clientY - box.top, canvas, page) : null;
  if (words) showTip(words, event.clientX, event.clientY);
  else hideTip();
}

/** Draw everything, and say it in words for those who do not see it. */
export function drawPanels(page) {
  const { task } = page;
  const run = page.runs[page.state.view];
  for (const spec of shownPanels(task)) {
    const canvas = canvasOf(spec);
    spec.panel.draw(canvas, page);
    canvas.setAttribute("aria-label", `${titleOf(spec, task)}. ${summary(spec.id, run)}`);
  }
  if (task.names) drawLags(run, task);
}

function drawLags(run, task) {
  const row = (tag, ...cells) => element("tr", {}, ...cells.map((words) => element(tag, {}, words)));
  const rows = (run.lags ?? []).map(({ token, lag, weight }) =>
    row("td", `after “${task.names[token]}”`, `lag ${lag}`, short(weight)),
  );
  document.getElementById("lags").replaceChildren(row("th", "current", "looks back", "attention"), ...rows);
}

function summary(id, { history, step }) {
  const value = history[id]?.at(-1);
  if (Number.isFinite(value)) return `Now ${short(value)} at step ${step}.`;
  return `α_V ${short(history.alpha_V?.at(-1))}, α_A ${short(history.alpha_A?.at(-1))} at step ${step}.`;
}

/** Where the run in view stands, in one line. */
export function statusLine({ state, task, runs, over }) {
  const run = runs[state.view];
  const parts = [`step ${run.step.toLocaleString("en")}`, `${run.samples.toLocaleString("en")} samples`];
  if (task.truth) parts.push(`α_V ${short(run.history.alpha_V.at(-1))}`, `α_A ${short(run.history.alpha_A.at(-1))}`);
  else parts.push(`loss ${short(run.history.loss.at(-1))}`);
  if (run.diverged) parts.push("diverged");
  else if (over) parts.push(run.settled ? "nothing changes any more" : "the end");
  return parts.join(" · ");
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
