// Own data: the earlier symbols that count most, and the text itself, each symbol in the colour of the lag that explains it best.
import { encode } from "./data.mjs";
import { element } from "./fields.mjs";
import { short } from "./plots.mjs";
import { say, showTip } from "./tips.mjs";

const SHOWN = 400; // symbols of the text
const HUES = ["#56b4e9", "#e69f00", "#1fb58a", "#cc79a7", "#f0e442"];

/**
 * For each of `count` symbols after the first T + 1: the symbol, the lag that contributes most to its prediction, that lag's share of
 * all (positive) contributions a_t·V[symbol, x_t], and the predicted probability.
 */
export function reasons(tokens, V, A, N, T, count = SHOWN) {
  const found = [];
  for (let at = T + 1; at < Math.min(tokens.length, T + 1 + count); at++) {
    const begin = tokens[at - 1] * T;
    let [sum, positive, best, most] = [0, 0, 2, 0];
    for (let t = 0; t < T; t++) {
      const part = A[begin + t] * V[tokens[at] * N + tokens[at - 1 - T + t]];
      sum += part;
      positive += Math.max(part, 0);
      if (part > most) [best, most] = [T + 1 - t, part];
    }
    found.push({
      token: tokens[at],
      lag: best,
      share: positive > 0 ? most / positive : 0,
      probability: Math.min(Math.max(sum, 0), 1),
    });
  }
  return found;
}

let encoded = { text: null };

function tokensOf({ text, unit }) {
  if (encoded.text !== text || encoded.unit !== unit) encoded = { text, unit, ...encode(text, unit) };
  return encoded.tokens;
}

const HINT =
  "Each symbol is tinted by the lag that contributes most to its prediction: the stronger the tint, the larger the share of that lag. To read the numbers of a symbol, point at it or move through the text with the arrow keys.";

function build(root) {
  const text = element("p", { id: "reasons", tabindex: "0", role: "group", "aria-label": "The text and what explains each symbol" });
  text.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const symbols = text.querySelectorAll("span");
    if (!move || !symbols.length) return;
    event.preventDefault();
    text.dataset.at = (Number(text.dataset.at ?? -1) + move + symbols.length) % symbols.length;
    const one = symbols[text.dataset.at];
    const box = one.getBoundingClientRect();
    showTip(one.title, box.left, box.top);
    say(one.title);
  });
  root.replaceChildren(
    element("table", { id: "lags" }),
    element("p", { class: "hint" }, HINT),
    element("p", { class: "keys" }),
    text,
  );
}

export const lags = {
  draw(root, { task, state, runs }) {
    const run = runs[state.view];
    if (!root.firstChild) build(root);
    const row = (tag, ...cells) => element("tr", {}, ...cells.map((words) => element(tag, {}, words)));
    const rows = (run.lags ?? [])
      .slice(0, 6)
      .map(({ token, lag, weight }) => row("td", `after “${task.names[token]}”`, `lag ${lag}`, short(weight)));
    root.querySelector("#lags").replaceChildren(row("th", "current", "looks back", "attention"), ...rows);
    if (run.attention.A && state.data) colourText(root, run, task, state.data);
  },
};

function colourText(root, run, task, data) {
  const found = reasons(tokensOf(data), run.V, run.attention.A, task.N, task.T);
  const totals = new Map();
  for (const { lag, share } of found) totals.set(lag, (totals.get(lag) ?? 0) + share);
  const leading = [...totals]
    .sort((x, y) => y[1] - x[1])
    .slice(0, HUES.length)
    .map(([lag]) => lag);
  const tint = (lag, share) => (leading.includes(lag) ? `${HUES[leading.indexOf(lag)]}${alpha(share)}` : "transparent");
  const gap = data.unit === "characters" ? "" : " ";
  const symbols = found.flatMap(({ token, lag, share, probability }) => {
    const chance = short(Number(probability.toPrecision(2)));
    const words = `“${task.names[token]}”: predicted with probability ${chance}, ${Math.round(100 * share)} % of it from lag ${lag}`;
    return [element("span", { style: `background:${tint(lag, share)}`, title: words }, task.names[token]), gap];
  });
  const keys = leading.map((lag, i) =>
    element("span", {}, element("span", { class: "key", style: `background:${HUES[i]}` }), `lag ${lag}`),
  );
  root.querySelector(".keys").replaceChildren(...keys);
  root.querySelector("#reasons").replaceChildren(...symbols);
}

// Two hexadecimal digits for how opaque a share is drawn.
const alpha = (share) =>
  Math.round(40 + 180 * Math.min(share, 1))
    .toString(16)
    .padStart(2, "0");
