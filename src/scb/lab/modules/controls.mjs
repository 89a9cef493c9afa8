// The settings of the page: fields made from a list, each tied to one place in the state.
import { RUN_DEFAULTS } from "./state.mjs";

const ENSEMBLE_NAMES = { strong: "strong (the paper's)", dirichlet: "Dirichlet", uniform: "uniform", softmax: "softmax" };
const TASK = [
  { name: "N", label: "tokens N", least: 2, low: 2, high: 20, whole: true },
  { name: "T", label: "positions T", least: 2, low: 50, high: 20000, whole: true, log: true },
  { name: "sparsity", label: "sparsity Q", least: 1, low: 1, high: 6, whole: true },
  { name: "ensemble", label: "P drawn as", choices: ENSEMBLE_NAMES },
  { name: "K_P", label: "sharpness K_P", low: 0, high: 0.6, step: 0.02 },
  { name: "seed", label: "task seed", plain: true, whole: true, help: "taskSeed" },
];
const RUN = [
  { name: "recipe", label: "recipe", choices: { paper: "the paper's", tuned: "tuned", sgd: "SGD, no ℓ1" } },
  { name: "lam", label: "λ", low: 1e-6, high: 1e-2, log: true, only: ["paper"] },
  { name: "batchSize", label: "batch size B", least: 1, low: 4, high: 2048, whole: true, log: true, only: ["paper", "sgd"] },
  { name: "eta", label: "η of stages", triple: true, only: ["paper", "sgd"] },
  { name: "steps", label: "steps of stages", triple: true, whole: true, only: ["paper", "sgd"] },
  { name: "accuracy", label: "accuracy", low: 0.005, high: 0.1, log: true, only: ["tuned"] },
  {
    name: "projector",
    label: "projector",
    choices: { auto: "the recipe's own", euclidean: "Euclidean (the paper's)", mu: "of the μ-product" },
  },
  { name: "resolveSign", label: "resolve the sign", check: true, only: ["paper", "sgd"] },
  { name: "freezeV", label: "freeze V", check: true, help: "freeze" },
  { name: "freezeA", label: "freeze A", check: true, help: "freeze" },
  { name: "seed", label: "seed", plain: true, whole: true, help: "runSeed" },
];

export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// A field; `read` gives its value in the state, `write` puts a new one there.
function field(spec, id, read, write) {
  const value = read();
  const label = element("label", { for: id, "data-help": spec.help ?? spec.name }, spec.label);
  if (spec.choices) {
    const options = Object.entries(spec.choices).map(([key, words]) =>
      element("option", { value: key, selected: key === value }, words),
    );
    return wrap(label, element("select", { id, onchange: (event) => write(event.target.value) }, ...options));
  }
  if (spec.check)
    return wrap(
      label,
      element("input", { id, type: "checkbox", checked: value, onchange: (event) => write(event.target.checked) }),
    );
  if (spec.triple) {
    const inputs = value.map((part, i) =>
      box(spec, `${id}-${i}`, part, (next) => write(value.map((old, j) => (i === j ? next : old)))),
    );
    inputs[0].id = id;
    inputs.forEach((input, i) => input.setAttribute("aria-label", `${spec.label} ${i + 1}`));
    return wrap(label, element("span", { class: "triple" }, ...inputs));
  }
  if (spec.plain) return wrap(label, box(spec, id, value, write));
  return wrap(label, element("span", { class: "pair" }, slider(spec, value, write), box(spec, id, value, write)));
}

const wrap = (label, input) => element("div", { class: "field" }, label, input);

function slider(spec, value, write) {
  const at = (x) => (spec.log ? Math.log10(x) : x);
  const step = spec.log ? 0.01 : (spec.step ?? 1);
  const input = element("input", {
    type: "range",
    min: at(spec.low),
    max: at(spec.high),
    step,
    "aria-label": `${spec.label}, slider`,
  });
  input.value = at(value);
  input.addEventListener("change", () => {
    const raw = spec.log ? 10 ** Number(input.value) : Number(input.value);
    write(spec.whole ? Math.round(raw) : Number(raw.toPrecision(3)));
  });
  return input;
}

// A box for a number: what is no number is marked, and changes nothing.
function box(spec, id, value, write) {
  const input = element("input", { id, type: "text", inputmode: "decimal", autocomplete: "off" });
  input.value = String(value);
  input.addEventListener("change", () => {
    const next = Number(input.value.trim().replaceAll(",", "."));
    const fits =
      input.value.trim() !== "" && Number.isFinite(next) && next >= (spec.least ?? 0) && (!spec.whole || Number.isInteger(next));
    input.classList.toggle("bad", !fits);
    if (fits) write(next);
  });
  return input;
}

/** Draw all settings for a state. `change(edit)` is called with a function that edits the state. */
export function drawControls(root, state, { change, keep, transfer, ownData, view }) {
  const open = [...root.querySelectorAll("details")].filter((node) => node.open).map((node) => node.id);
  const focused = document.activeElement?.id;
  root.replaceChildren(
    taskFields(state, change),
    runFields(state, change, view),
    transferFields(state, transfer),
    dataFields(state, ownData),
    keepFields(keep),
  );
  for (const id of open) root.querySelector(`#${id}`)?.setAttribute("open", "");
  if (focused && root.querySelector(`#${CSS.escape(focused)}`)) root.querySelector(`#${CSS.escape(focused)}`).focus();
}

function taskFields(state, change) {
  const shown = state.data ? TASK.filter((spec) => ["T", "sparsity"].includes(spec.name)) : TASK;
  const fields = shown.map((spec) => {
    const own = state.data && spec.name === "T" ? { ...spec, label: "context T", low: 5 } : spec;
    return field(
      own,
      `task-${spec.name}`,
      () => state.task[spec.name],
      (value) => change((next) => (next.task[spec.name] = value)),
    );
  });
  const another = element("button", { onclick: () => change((next) => (next.task.seed += 1)) }, "New task");
  return element(
    "fieldset",
    { id: "task" },
    element("legend", {}, state.data ? "Own data" : "Task"),
    ...fields,
    ...(state.data ? [] : [element("div", { class: "row" }, another)]),
  );
}

function runFields(state, change, view) {
  const run = state.runs[state.view];
  const tabs = state.runs.map((_, i) =>
    element(
      "button",
      { role: "tab", "aria-selected": String(i === state.view), onclick: () => view(i) },
      element("span", { class: "swatch", style: `border-top: 3px ${["solid", "dashed", "dotted", "double"][i]} var(--run${i})` }),
      "ABCD"[i],
    ),
  );
  const add = element(
    "button",
    {
      id: "add-run",
      disabled: state.runs.length >= 4,
      title: "a copy of this run, to be changed",
      onclick: () =>
        change((next) => {
          next.runs.push(structuredClone(run));
          next.view = next.runs.length - 1;
        }),
    },
    "+ compare",
  );
  const remove = element(
    "button",
    {
      id: "remove-run",
      disabled: state.runs.length < 2,
      onclick: () =>
        change((next) => {
          next.runs.splice(next.view, 1);
          next.view = Math.min(next.view, next.runs.length - 1);
        }),
    },
    "remove",
  );
  const shown = RUN.filter((spec) => !spec.only || spec.only.includes(run.recipe));
  const fields = shown.map((spec) =>
    field(
      spec,
      `run-${spec.name}`,
      () => run[spec.name],
      (value) => change((next) => edit(next.runs[next.view], spec.name, value)),
    ),
  );
  const reset = element(
    "button",
    {
      onclick: () =>
        change((next) => {
          next.runs[next.view] = { ...structuredClone(RUN_DEFAULTS), seed: run.seed };
        }),
    },
    "The paper's settings",
  );
  return element(
    "fieldset",
    { id: "run" },
    element("legend", {}, "Runs"),
    element("div", { class: "row", role: "tablist" }, ...tabs, add, remove),
    ...fields,
    element("div", { class: "row" }, reset),
  );
}

const edit = (run, name, value) => {
  run[name] = value;
};

function transferFields(state, transfer) {
  const button = element(
    "button",
    { id: "transfer", disabled: Boolean(state.data), onclick: transfer, "data-help": "transfer" },
    "Keep V, draw a new Q, go on",
  );
  return element("fieldset", {}, element("legend", {}, "Transfer"), element("div", { class: "row" }, button));
}

function dataFields(state, { use, drop, kalevala }) {
  const text = element("textarea", {
    id: "own-text",
    rows: 5,
    "aria-label": "Own text or column",
    placeholder: "Paste a text, or a column with one symbol per line; or drop a file here.",
  });
  if (state.data) text.value = state.data.text.slice(0, 40000);
  const unit = element(
    "select",
    { id: "own-unit", "aria-label": "symbols are" },
    ...["guess", "characters", "words", "lines"].map((word) =>
      element(
        "option",
        { value: word, selected: state.data?.unit === word },
        word === "guess" ? "guess what symbols are" : `symbols are ${word}`,
      ),
    ),
  );
  const train = element("button", { id: "own-train", onclick: () => use(text.value, unit.value) }, "Train on it");
  const back = element("button", { id: "own-drop", disabled: !state.data, onclick: drop }, "Back to tasks");
  const example = element("button", { id: "own-kalevala", onclick: kalevala }, "The Kalevala");
  text.addEventListener("dragover", (event) => event.preventDefault());
  text.addEventListener("drop", async (event) => {
    const [file] = event.dataTransfer.files;
    if (!file) return;
    event.preventDefault();
    text.value = await file.text();
    use(text.value, unit.value);
  });
  return element(
    "details",
    { id: "own" },
    element("summary", { "data-help": "data" }, "Your own text"),
    text,
    element("div", { class: "field" }, unit),
    element("div", { class: "row" }, train, example, back),
  );
}

function keepFields({ link, csv, python }) {
  const code = element("textarea", { id: "python", rows: 5, readonly: true, "aria-label": "The same run in Python" });
  code.value = python();
  return element(
    "fieldset",
    {},
    element("legend", {}, "Keep"),
    element(
      "div",
      { class: "row" },
      element("button", { id: "link", onclick: link }, "Copy link"),
      element("button", { id: "csv", onclick: csv }, "History (CSV)"),
    ),
    element("p", { class: "hint" }, "The same run in Python:"),
    code,
  );
}
