// One sample, followed through the model a step at a time: where the last token looks, what it finds, what the model makes of it.
import { element } from "./fields.mjs";
import { short } from "./plots.mjs";
import { say } from "./tips.mjs";

const HUES = ["#56b4e9", "#e69f00", "#1fb58a", "#cc79a7"];
const hue = (token) => HUES[token % HUES.length];
const rounded = (value) => short(Number(value.toFixed(2)));

/**
 * What the model (V, A) computes of a sample: the `weights` of its positions, the `mass` Xa of each token, the `prediction` VXa, the
 * `loss` ½‖e_o − VXa‖², and the `push` −∂l/∂a_t that the sample gives to the weight of each position.
 */
export function follow({ context, last, label }, V, A, N) {
  const T = context.length;
  const weights = A.slice(last * T, (last + 1) * T);
  const mass = new Float64Array(N);
  context.forEach((token, t) => (mass[token] += weights[t]));
  const prediction = Float64Array.from({ length: N }, (_, n) => mass.reduce((sum, share, m) => sum + V[n * N + m] * share, 0));
  const residual = prediction.map((value, n) => value - (n === label ? 1 : 0));
  const loss = 0.5 * residual.reduce((sum, r) => sum + r * r, 0);
  const push = Float64Array.from(context, (token) => -residual.reduce((sum, r, n) => sum + r * V[n * N + token], 0));
  return { weights, mass, prediction, loss, push };
}

// ---------------------------------------------------------------------------------------------------- what is said

const list = (values) => Array.from(values, (value, token) => `token ${token}: ${rounded(value)}`).join(", ");

/** The sentences of the walk, in order. `seen` is what `follow` gives, `truth` has P, positions and weights. */
export function sentences(sample, seen, truth, { N, T, sparsity }) {
  const { context, last, position, label } = sample;
  const mine = Array.from({ length: sparsity }, (_, j) => last * sparsity + j);
  const choices = mine.map((j) => `position ${truth.positions[j]} (${Math.round(100 * truth.weights[j])} %)`).join(" or ");
  const found = context[position];
  const odds = Array.from({ length: N }, (_, n) => truth.P[n * N + found]);
  return [
    `Here are ${T} random tokens, at positions 0 to ${T - 1}, followed by one last token, ${last}. Which token comes next?`,
    `In the task, the last token says where to look: token ${last} looks at ${choices}. This time the choice fell on position ${position}.`,
    `Position ${position} holds token ${found}, so the odds of the next token are column ${found} of P: ${list(odds)}. The next token came out as ${label}.`,
    `The model knows neither the positions nor P. Column ${last} of A gives every position a weight (bars). Rings mark the true weights.`,
    `The model adds up the weights of equal tokens: ${list(seen.mass)}.`,
    `V turns these sums into a prediction: ${list(seen.prediction)}.`,
    `The next token was ${label}, so the loss, half the squared error, is ${rounded(seen.loss)}. The sample pushes each weight up or down (arrows): a weight is pushed up where more weight would have lowered the loss. One sample says little, but training adds up thousands of samples.`,
  ];
}

// ---------------------------------------------------------------------------------------------------- the picture

const SIDE = 40;
const PITCH = 48;
const STRIP = 96; // the top of the tokens
const BASE = 236; // the foot of the weights
const FOOT = 356; // the foot of the bars below
const place = (i) => 10 + PITCH * i;

function tile(token, x, y, strong, size = SIDE) {
  const opacity = strong ? 1 : 0.4;
  const rect = `<rect x="${x}" y="${y}" width="${size}" height="${size}" rx="8" fill="${hue(token)}" opacity="${opacity}"/>`;
  const ring = strong ? `<rect x="${x - 2}" y="${y - 2}" width="${size + 4}" height="${size + 4}" rx="10" class="line"/>` : "";
  return `${rect}${ring}<text x="${x + size / 2}" y="${y + size / 2 + 6}" class="${strong ? "in" : ""}">${token}</text>`;
}

function jump(from, to, strong) {
  const [a, b] = [place(from) + SIDE / 2, place(to) + SIDE / 2];
  const high = STRIP - 76;
  const curve = `M${a} ${STRIP - 6}C${a} ${high} ${b} ${high} ${b} ${STRIP - 9}`;
  const head = `M${b - 6} ${STRIP - 17}L${b} ${STRIP - 7}L${b + 6} ${STRIP - 17}`;
  return `<path class="line${strong ? "" : " faint"}" d="${curve}${head}"/>`;
}

function bars(values, x, title, marked = -1) {
  const parts = Array.from(values, (value, token) => {
    const height = Math.max(0, Math.min(value, 1.2)) * 54;
    const at = x + 44 * token;
    const rect = `<rect x="${at}" y="${FOOT - height}" width="30" height="${height}" fill="${hue(token)}"${token === marked ? ' class="outline"' : ""}/>`;
    return `${rect}<text class="small" x="${at + 15}" y="${FOOT - height - 5}">${rounded(value)}</text><text class="small" x="${at + 15}" y="${FOOT + 16}">${token}</text>`;
  });
  return `<text class="small left" x="${x}" y="${FOOT - 82}">${title}</text>${parts.join("")}`;
}

function weightBars(sample, seen, truth, sparsity, pushes) {
  const scale = 66 / Math.max(1, ...seen.weights.map(Math.abs));
  const steepest = Math.max(...seen.push.map(Math.abs), 1e-9);
  const drawn = Array.from(seen.weights, (value, t) => {
    const x = place(t) + 6;
    const height = Math.abs(value) * scale;
    const bar = `<rect class="weight" x="${x}" y="${value < 0 ? BASE : BASE - height}" width="28" height="${Math.max(height, 0.5)}"/>`;
    const length = (18 * seen.push[t]) / steepest;
    const tip = BASE + 15 - length / 2;
    const wing = Math.sign(length) * 5;
    const arrow = `<path class="line" d="M${x + 14} ${BASE + 15 + length / 2}V${tip}M${x + 9} ${tip + wing}L${x + 14} ${tip}L${x + 19} ${tip + wing}"/>`;
    return bar + (pushes && Math.abs(length) > 1 ? arrow : "");
  });
  const rings = Array.from({ length: sparsity }, (_, j) => {
    const entry = sample.last * sparsity + j;
    return `<circle class="line" cx="${place(truth.positions[entry]) + 20}" cy="${BASE - truth.weights[entry] * scale}" r="6"/>`;
  });
  return `<path class="axis" d="M8 ${BASE}H${place(seen.weights.length) - 6}"/>${drawn.join("")}${rings.join("")}`;
}

/** The picture of a sample up to a stage of the walk, as SVG. */
function picture(sample, seen, task, stage) {
  const { context, last, position, label } = sample;
  const { truth, N, T, sparsity } = task;
  const chosen = Array.from({ length: sparsity }, (_, j) => truth.positions[last * sparsity + j]);
  const odds = Array.from({ length: N }, (_, n) => truth.P[n * N + context[position]]);
  const parts = [
    ...Array.from(context, (token, t) => tile(token, place(t), STRIP, (stage >= 1 && t === position) || stage === 0)),
    ...Array.from(context, (_, t) => `<text class="small" x="${place(t) + SIDE / 2}" y="${STRIP + SIDE + 16}">${t}</text>`),
    tile(last, place(T) + 8, STRIP, true),
    `<text class="small" x="${place(T) + 28}" y="${STRIP + SIDE + 16}">last</text>`,
    stage >= 2
      ? tile(label, place(T + 1) + 22, STRIP, true)
      : `<rect class="slot" x="${place(T + 1) + 22}" y="${STRIP}" width="${SIDE}" height="${SIDE}" rx="8"/>`,
    `<text class="small" x="${place(T + 1) + 42}" y="${STRIP + SIDE + 16}">next</text>`,
    ...(stage >= 1 ? chosen.map((t) => jump(T + 0.17, t, t === position)) : []),
    stage >= 2 ? bars(odds, place(T - 2), `the odds, P after ${context[position]}`, label) : "",
    stage >= 3 ? weightBars(sample, seen, truth, sparsity, stage >= 6) : "",
    stage >= 4 ? bars(seen.mass, place(0), "what A reads") : "",
    stage >= 5 ? bars(seen.prediction, place(5), "what V predicts", stage >= 6 ? label : -1) : "",
  ];
  return parts.join("");
}

// ---------------------------------------------------------------------------------------------------- the panel

const walk = { stage: 0, index: 0 };

function build(root) {
  const go = (act) => () => {
    act();
    root.stale = true;
    sample.draw(root, root.view);
    say(root.querySelector(".said").textContent);
  };
  const buttons = [
    element("button", { id: "walk-back", onclick: go(() => (walk.stage = Math.max(0, walk.stage - 1))) }, "← Back"),
    element("button", { id: "walk-next", class: "primary", onclick: go(() => (walk.stage += 1)) }, "Next →"),
    element(
      "button",
      { id: "walk-other", onclick: go(() => Object.assign(walk, { index: walk.index + 1, stage: 0 })) },
      "Another sample",
    ),
  ];
  const svg = document.createElementNS(`http:${"//"}www.w3.org/2000/svg`, "svg");
  svg.setAttribute("role", "img");
  svg.setAttribute("class", "walk");
  root.replaceChildren(element("p", { class: "said" }), element("div", { class: "row" }, ...buttons), svg);
}

export const sample = {
  draw(root, view) {
    const { task, runs, state } = view;
    const { V, attention } = runs[state.view];
    if (!task.samples.length || !attention.A) return;
    root.view = view;
    if (!root.firstChild) build(root);
    const one = task.samples[walk.index % task.samples.length];
    const seen = follow(one, V, attention.A, task.N);
    const said = sentences(one, seen, task.truth, task);
    if (view.playing) walk.stage = said.length - 1;
    walk.stage = Math.min(walk.stage, said.length - 1);
    const svg = root.querySelector("svg");
    const [top, bottom] = [walk.stage === 0 ? STRIP - 8 : 30, walk.stage < 2 ? STRIP + 66 : FOOT + 24];
    svg.setAttribute("viewBox", `0 ${top} ${place(task.T + 1) + 78} ${bottom - top}`);
    svg.innerHTML = picture(one, seen, task, walk.stage);
    svg.setAttribute("aria-label", `Sample ${(walk.index % task.samples.length) + 1}, stage ${walk.stage + 1} of ${said.length}.`);
    root.querySelector(".said").textContent = `${walk.stage + 1} of ${said.length}. ${said[walk.stage]}`;
    root.querySelector("#walk-back").disabled = walk.stage === 0;
    root.querySelector("#walk-next").disabled = walk.stage === said.length - 1;
  },
};
