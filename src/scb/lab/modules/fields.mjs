// Fields: each is tied to one place in the state, and is updated in place, so that a slider can be dragged and keeps the focus.
// A field is { node, sync }; sync() writes the state's value into it, unless someone is typing there.
import { short } from "./plots.mjs";

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

/** A field for a spec; `read` gives its value in the state, `write(value, live)` puts a new one there (live: while dragging). */
export function field(spec, id, read, write) {
  const kinds = [
    [spec.choices, chooser],
    [spec.check, checkbox],
    [spec.triple, triple],
    [spec.plain, box],
    [true, sliderAndBox],
  ];
  const made = kinds.find(([asked]) => asked)[1](spec, id, read, write);
  const label = element("label", { for: id }, spec.label);
  const node = element("div", { class: "field", "data-help": spec.help ?? spec.name }, label, made.node);
  made.sync();
  return { node, sync: made.sync };
}

function chooser(spec, id, read, write) {
  const options = Object.entries(spec.choices).map(([key, words]) => element("option", { value: key }, words));
  const node = element("select", { id, onchange: () => write(node.value) }, ...options);
  return { node, sync: () => (node.value = read()) };
}

function checkbox(spec, id, read, write) {
  const node = element("input", { id, type: "checkbox", onchange: () => write(node.checked) });
  return { node, sync: () => (node.checked = read()) };
}

function triple(spec, id, read, write) {
  const parts = [0, 1, 2].map((i) => {
    const replace = (next) => write(read().map((old, j) => (i === j ? next : old)));
    return box(spec, i ? `${id}-${i}` : id, () => read()[i], replace);
  });
  parts.forEach((part, i) => part.node.setAttribute("aria-label", `${spec.label}, stage ${i + 1}`));
  return {
    node: element("span", { class: "triple" }, ...parts.map((part) => part.node)),
    sync: () => parts.forEach((part) => part.sync()),
  };
}

// A box for a number: what is no number is marked, and changes nothing.
function box(spec, id, read, write) {
  const node = element("input", { id, type: "text", inputmode: "decimal", autocomplete: "off" });
  node.addEventListener("change", () => {
    const next = Number(node.value.trim().replaceAll(",", "."));
    const inRange = next >= (spec.least ?? 0) && next <= (spec.most ?? Infinity);
    const fits = node.value.trim() !== "" && inRange && (!spec.whole || Number.isInteger(next));
    node.classList.toggle("bad", !fits);
    node.setAttribute("aria-invalid", String(!fits));
    if (fits) write(next);
  });
  const sync = () => {
    if (document.activeElement !== node) node.value = String(read());
  };
  return { node, sync };
}

function sliderAndBox(spec, id, read, write) {
  const number = box(spec, id, read, write);
  const at = (x) => (spec.log ? Math.log10(Math.max(x, spec.low)) : x);
  const range = { min: at(spec.low), max: at(spec.high), step: spec.log ? 0.01 : (spec.step ?? 1) };
  const node = element("input", { id: `${id}-slider`, type: "range", ...range, "aria-label": `${spec.label}, slider` });
  node.addEventListener("input", () => {
    const raw = spec.log ? 10 ** Number(node.value) : Number(node.value);
    write(spec.whole ? Math.round(raw) : Number(raw.toPrecision(3)), true);
    node.setAttribute("aria-valuetext", short(read()));
  });
  const sync = () => {
    if (document.activeElement !== node) node.value = at(read());
    node.setAttribute("aria-valuetext", short(read()));
    number.sync();
  };
  return { node: element("span", { class: "pair" }, node, number.node), sync };
}
