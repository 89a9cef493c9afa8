// The settings of the page. A scene shows the few that belong to its idea; the others are behind a fold.
import { element, field } from "./fields.mjs";
import { swatch } from "./runs.mjs";
import { COLOURS, MOST_RUNS, RUN_DEFAULTS } from "./state.mjs";

const ENSEMBLE_NAMES = { strong: "strong (the paper's)", dirichlet: "Dirichlet", uniform: "uniform", softmax: "softmax" };
const TASK = [
  { name: "N", label: "tokens N", least: 2, most: 255, low: 2, high: 20, whole: true },
  { name: "T", label: "positions T", least: 2, most: 1e6, low: 50, high: 20000, whole: true, log: true },
  { name: "sparsity", label: "sparsity Q", least: 1, low: 1, high: 6, whole: true },
  { name: "ensemble", label: "P drawn as", choices: ENSEMBLE_NAMES },
  { name: "K_P", label: "sharpness K_P", low: 0, high: 0.6, step: 0.02 },
  { name: "seed", label: "task seed", plain: true, whole: true, help: "taskSeed" },
];
const RUN = [
  {
    name: "recipe",
    label: "recipe",
    choices: { paper: "the paper's", tuned: "tuned", sgd: "SGD, no ℓ1", softmax: "softmax attention" },
  },
  { name: "lam", label: "λ", low: 1e-6, high: 1e-2, log: true, only: ["paper"] },
  {
    name: "batchSize",
    label: "batch size B",
    least: 1,
    low: 4,
    high: 2048,
    whole: true,
    log: true,
    only: ["paper", "sgd", "softmax"],
  },
  { name: "eta", label: "η of stages", triple: true, only: ["paper", "sgd"] },
  { name: "steps", label: "steps per stage", triple: true, whole: true, only: ["paper", "sgd", "softmax"] },
  { name: "accuracy", label: "accuracy", low: 0.005, high: 0.1, log: true, only: ["tuned"] },
  {
    name: "projector",
    label: "projector",
    choices: { auto: "the recipe's own", euclidean: "Euclidean (the paper's)", mu: "μ-projector" },
    only: ["paper", "tuned", "sgd"],
  },
  { name: "resolveSign", label: "resolve the sign", check: true, only: ["paper", "sgd"] },
  { name: "freezeV", label: "freeze V", check: true, help: "freeze" },
  { name: "freezeA", label: "freeze A", check: true, help: "freeze" },
  { name: "seed", label: "seed", plain: true, whole: true, help: "runSeed" },
];

const LONG = 5000; // characters of a text that are not shown again

const specOf = (name) => (name.startsWith("task.") ? TASK : RUN).find((spec) => spec.name === name.split(".")[1]);

/**
 * Draw the settings that `asked` names ("run.lam"), and the others behind a fold if `rest` is true; null asks for all. What is there
 * already is updated in place. `page.state` is the state; `act` holds what the page does: change(edit, live), view, keep, …
 */
export function drawControls(root, page, act, asked = null, rest = true) {
  const { state } = page;
  const run = state.runs[state.view];
  const shape = JSON.stringify([asked, rest, Boolean(state.data), state.runs.length, state.view, run.recipe]);
  if (root.dataset.shape === shape) {
    for (const sync of root.syncs) sync();
    return;
  }
  const open = [...root.querySelectorAll("details[open]")].map((node) => node.id);
  const focused = document.activeElement?.id;
  root.dataset.shape = shape;
  root.syncs = [];
  const take = (made) => {
    root.syncs.push(made.sync);
    return made.node;
  };
  const make = fieldMaker(page, act, take);
  const first = (asked ?? []).filter((name) => name.includes(".") && fits(specOf(name), name, state)).map(make);
  if (asked?.includes("turn")) first.push(row(element("button", { id: "turn", onclick: act.turn }, "Turn the heads")));
  const others = (specs, kind) =>
    specs.map((spec) => `${kind}.${spec.name}`).filter((name) => !asked?.includes(name) && fits(specOf(name), name, state));
  const own = asked?.includes("own") ? [take(dataFields(page, act.ownData, true))] : [];
  const tabs = state.runs.length > 1 || !asked ? [runTabs(page, act, asked === null)] : [];
  const tries = asked && (first.length || tabs.length) ? [group("Try it", ...tabs, ...first)] : [];
  const all = () => [
    group(state.data ? "Own data" : "Task", ...others(TASK, "task").map(make), ...(state.data ? [] : [newTask(act)])),
    group("Runs", ...(asked ? [runTabs(page, act, true)] : tabs), ...others(RUN, "run").map(make), resetRun(act)),
    transferFields(state, act.transfer),
    ...(own.length ? [] : [take(dataFields(page, act.ownData, false))]),
    take(keepFields(act.keep)),
  ];
  const folded = asked
    ? [element("details", { id: "settings" }, element("summary", {}, "All settings"), ...(rest ? all() : []))]
    : all();
  root.replaceChildren(...own, ...tries, ...(rest ? folded : []));
  for (const id of open) root.querySelector(`#${id}`)?.setAttribute("open", "");
  if (focused) root.querySelector(`#${CSS.escape(focused)}`)?.focus();
}

function fits(spec, name, state) {
  if (!spec) return false;
  if (state.data && name.startsWith("task.")) return ["T", "sparsity"].includes(spec.name);
  return !spec.only || spec.only.includes(state.runs[state.view].recipe);
}

const fieldMaker = (page, act, take) => (name) => {
  const [kind, key] = name.split(".");
  const of = (state) => (kind === "task" ? state.task : state.runs[state.view]);
  const spec = page.state.data && name === "task.T" ? { ...specOf(name), label: "context T", low: 5 } : specOf(name);
  const write = (value, live) => act.change((next) => (of(next)[key] = value), live);
  return take(field(spec, `${kind}-${key}`, () => of(page.state)[key], write));
};

const group = (title, ...children) => element("fieldset", {}, element("legend", {}, title), ...children);
const row = (...children) => element("div", { class: "row" }, ...children);

function runTabs({ state }, { change, view }, editable) {
  const tabs = state.runs.map((_, i) =>
    element("button", { "aria-pressed": String(i === state.view), onclick: () => view(i) }, swatch(i), COLOURS[i]),
  );
  if (!editable) return element("div", { class: "row", role: "group", "aria-label": "Run shown" }, ...tabs);
  const add = () =>
    change((next) => {
      next.runs.push(structuredClone(next.runs[next.view]));
      next.view = next.runs.length - 1;
    });
  const remove = () => change((next) => next.runs.splice(next.view, 1));
  const title = "Add a copy of this run, which you can then change";
  const buttons = [
    element("button", { id: "add-run", disabled: state.runs.length >= MOST_RUNS, title, onclick: add }, "+ compare"),
    element("button", { id: "remove-run", disabled: state.runs.length < 2, onclick: remove }, "remove"),
  ];
  return element("div", { class: "row", role: "group", "aria-label": "Runs" }, ...tabs, ...buttons);
}

const newTask = ({ change }) => row(element("button", { onclick: () => change((next) => (next.task.seed += 1)) }, "New task"));

function resetRun({ change }) {
  const reset = (next) => {
    next.runs[next.view] = { ...structuredClone(RUN_DEFAULTS), seed: next.runs[next.view].seed };
  };
  return row(element("button", { onclick: () => change(reset) }, "The paper's settings"));
}

function transferFields(state, transfer) {
  const attributes = {
    id: "transfer",
    disabled: Boolean(state.data) || state.task.heads > 1,
    onclick: transfer,
    "data-help": "transfer",
  };
  return group("Transfer", row(element("button", attributes, "Keep V, draw a new Q and continue")));
}

function dataFields(page, { use, drop, kalevala }, open) {
  const text = element("textarea", {
    id: "own-text",
    rows: 5,
    "aria-label": "Your text or column",
  });
  const units = {
    guess: "guess what the symbols are",
    characters: "one symbol per character",
    words: "one symbol per word",
    lines: "one symbol per line",
  };
  const options = Object.entries(units).map(([value, words]) => element("option", { value }, words));
  const unit = element("select", { id: "own-unit", "aria-label": "Symbols are" }, ...options);
  const train = element(
    "button",
    { id: "own-train", class: "primary", onclick: () => use(text.value || (page.state.data?.text ?? ""), unit.value) },
    "Train on this text",
  );
  const back = element("button", { id: "own-drop", onclick: drop }, "Back to tasks");
  const example = element("button", { id: "own-kalevala", onclick: kalevala }, "The Kalevala");
  text.addEventListener("dragover", (event) => event.preventDefault());
  text.addEventListener("drop", async (event) => {
    const [file] = event.dataTransfer.files;
    if (!file) return;
    event.preventDefault();
    text.value = await file.text();
    use(text.value, unit.value);
  });
  const sync = () => {
    const { data } = page.state;
    const long = data?.text.length > LONG;
    if (data && document.activeElement !== text) text.value = long ? "" : data.text;
    const loaded = long ? `A text of ${data.text.length.toLocaleString("en")} characters is loaded. To replace it, paste` : "Paste";
    text.placeholder = `${loaded} a text or a column with one symbol per line, or drop a file here.`;
    if (data && document.activeElement !== unit) unit.value = data.unit;
    back.disabled = !data;
  };
  sync();
  const heading = element("summary", { "data-help": "data" }, "Your own text");
  const node = element("details", { id: "own", open }, heading, text, row(unit), row(train, example, back));
  return { node, sync };
}

function keepFields({ link, csv, python }) {
  const code = element("textarea", { id: "python", rows: 5, readonly: true, "aria-label": "The same run in Python" });
  const buttons = row(
    element("button", { id: "link", onclick: link }, "Copy link"),
    element("button", { id: "csv", onclick: csv }, "History (CSV)"),
  );
  const node = group("Keep", buttons, element("p", { class: "hint" }, "The same run in Python:"), code);
  const sync = () => (code.value = python());
  sync();
  return { node, sync };
}
