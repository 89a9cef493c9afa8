// The panels of two heads: what each attends to, and the singular values of the function as they are learned.
import { axes, dot, line, prepare, short, trace } from "./plots.mjs";

// ---------------------------------------------------------------------------------------------------- the heads

function layout(canvas, { N }) {
  const [width, height] = [canvas.clientWidth / 2, (canvas.clientHeight - 34) / N];
  return [0, 1].flatMap((h) =>
    Array.from({ length: N }, (_, k) => ({
      h,
      k,
      box: { left: h * width + 38, right: (h + 1) * width - 8, top: 20 + k * height + 12, bottom: 20 + (k + 1) * height - 6 },
    })),
  );
}

const weightsOf = (A, { T }, h, k) => A.subarray((2 * k + h) * T, (2 * k + h + 1) * T);

export const heads = {
  draw(canvas, { task, runs, state, style }) {
    const { A } = runs[state.view].attention;
    const { context, height } = prepare(canvas, style.paper);
    const low = A.reduce((least, a) => Math.min(least, a), 0);
    const high = task.truth.weights.reduce(
      (most, w) => Math.max(most, w),
      A.reduce((most, a) => Math.max(most, a), 0),
    );
    for (const { h, k, box } of layout(canvas, task)) {
      const map = axes(context, box, { x: [0, task.T], y: [1.1 * low, 1.1 * high], style, xTicks: 0, yTicks: 2 });
      const wide = (box.right - box.left) / task.T;
      weightsOf(A, task, h, k).forEach((a, t) => {
        const entry = entryAt(task, k, t);
        context.fillStyle = entry < 0 ? style.core : style[`run${task.truth.owners[entry]}`];
        const [top, bottom] = [map.y(Math.max(a, 0)), map.y(Math.min(a, 0))];
        context.fillRect(box.left + t * wide + 1, top, Math.max(1, wide - 2), Math.max(1, bottom - top));
      });
      for (let j = k * task.sparsity; j < (k + 1) * task.sparsity; j++) {
        const { positions, weights, owners } = task.truth;
        dot(context, map.x(positions[j] + 0.5), map.y(weights[j]), 4, null, style[`run${owners[j]}`], 2);
      }
      label(context, box, h, k, style);
    }
    context.textBaseline = "bottom";
    context.fillStyle = style.soft;
    for (const left of [38, canvas.clientWidth / 2 + 38]) context.fillText("position 0", left, height - 1);
  },
  at(x, y, canvas, { task, runs, state }) {
    const found = layout(canvas, task).find(
      ({ box }) => x >= box.left && x <= box.right && y >= box.top - 12 && y <= box.bottom + 6,
    );
    if (!found) return null;
    const { h, k, box } = found;
    const t = Math.min(Math.floor(((x - box.left) / (box.right - box.left)) * task.T), task.T - 1);
    const entry = entryAt(task, k, t);
    const weight = short(weightsOf(runs[state.view].attention.A, task, h, k)[t]);
    const truth =
      entry < 0
        ? "should be ignored"
        : `belongs to pattern ${task.truth.owners[entry]}, with true weight ${short(task.truth.weights[entry])}`;
    return `After token ${k}, head ${h} gives position ${t} the weight ${weight}. This position ${truth}.`;
  },
  stops(canvas, { task }) {
    const across = (box, t) => box.left + ((t + 0.5) / task.T) * (box.right - box.left);
    const places = (k) => task.truth.positions.slice(k * task.sparsity, (k + 1) * task.sparsity);
    return layout(canvas, task).flatMap(({ k, box }) => Array.from(places(k), (t) => [across(box, t), (box.top + box.bottom) / 2]));
  },
};

function entryAt({ truth, sparsity }, k, t) {
  for (let j = k * sparsity; j < (k + 1) * sparsity; j++) if (truth.positions[j] === t) return j;
  return -1;
}

function label(context, box, h, k, style) {
  context.fillStyle = style.ink;
  context.textAlign = "left";
  context.textBaseline = "top";
  if (k === 0) {
    context.font = "600 12px system-ui, sans-serif";
    context.fillText(`Head ${h}`, box.left, 2);
    context.font = "11px system-ui, sans-serif";
  }
  context.fillText(`after token ${k}`, box.left + 4, box.top - 11);
}

// ---------------------------------------------------------------------------------------------------- the singular values

const boxOf = (canvas) => ({ left: 44, right: canvas.clientWidth - 8, top: 16, bottom: canvas.clientHeight - 32 });
const endOf = ({ task, runs }) =>
  Math.max(...task.stages.map((stages) => stages.reduce((sum, { steps }) => sum + steps, 0)), ...runs.map((run) => run.step));

export const singular = {
  draw(canvas, view) {
    const { task, runs, state, style } = view;
    const { history } = runs[state.view];
    const { context } = prepare(canvas, style.paper);
    const box = boxOf(canvas);
    const map = axes(context, box, { x: [0, endOf(view)], y: [0, 1.25 * task.singular[0]], style, xLabel: "steps" });
    const change = task.stages[state.view][0].steps;
    context.strokeStyle = style.soft;
    context.setLineDash([3, 3]);
    line(context, map.x(change), box.top, map.x(change), box.bottom);
    context.fillStyle = style.soft;
    context.textAlign = "left";
    context.textBaseline = "top";
    context.fillText("ℓ1 begins", map.x(change) + 4, 2);
    task.singular.forEach((value, i) => {
      context.strokeStyle = style.ink;
      line(context, box.left, map.y(value), box.right, map.y(value));
      context.fillStyle = style.ink;
      context.textBaseline = "bottom";
      context.fillText(`σ${"₁₂"[i]} of the task`, box.left + 4, map.y(value) - 2);
    });
    context.setLineDash([]);
    ["sigma_1", "sigma_2"].forEach((name, i) =>
      trace(context, box, map, history.step, history[name], { color: style.ink, width: 2.4 - 0.6 * i }),
    );
    trace(
      context,
      box,
      map,
      history.step,
      history.overlap.map((value) => value * task.singular[0]),
      { color: style.theory, width: 1.2, dash: [2, 3] },
    );
    if (view.cursor !== undefined) line(context, map.x(view.cursor), box.top, map.x(view.cursor), box.bottom);
  },
  at(x, y, canvas, view) {
    const box = boxOf(canvas);
    if (x < box.left || x > box.right) return null;
    const { history } = view.runs[view.state.view];
    const step = ((x - box.left) / (box.right - box.left)) * endOf(view);
    const row = Math.max(
      0,
      history.step.findLastIndex((s) => s <= step),
    );
    const [first, second] = view.task.singular.map(short);
    return `At step ${history.step[row]}: σ₁ = ${short(history.sigma_1[row])} of ${first}, σ₂ = ${short(history.sigma_2[row])} of ${second}; the less clear head has an overlap of ${short(history.overlap[row])} with a true head.`;
  },
  stops(canvas, view) {
    const box = boxOf(canvas);
    const reached = view.runs[view.state.view].history.step.at(-1) / endOf(view);
    return Array.from({ length: 21 }, (_, i) => [
      box.left + (i / 20) * reached * (box.right - box.left),
      (box.top + box.bottom) / 2,
    ]);
  },
};
