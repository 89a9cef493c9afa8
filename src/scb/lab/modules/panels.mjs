// The panels: each draws itself from what the page knows, and says what lies under the pointer.
//   draw(canvas, view)      view: { task, runs, state, style }
//   at(x, y, canvas, view)  a sentence, or null
import { axes, dot, line, prepare, shade, short } from "./plots.mjs";

const symbol = (task, k) => (task.names ? task.names[k] : String(k));
const shownRun = (view) => view.runs[view.state.view];

// ---------------------------------------------------------------------------------------------------- attention

/** Whether positions are few enough for a bar each, instead of a density; own texts always are. */
const isShort = (task) => Boolean(task.names) || task.T <= 64;

function attentionLayout(canvas, task) {
  const narrow = canvas.clientWidth < 520;
  const columns = task.N > 6 && !narrow ? 2 : 1;
  const rows = Math.ceil(task.N / columns);
  const width = canvas.clientWidth / columns;
  const height = (canvas.clientHeight - 18) / rows;
  const boxes = Array.from({ length: task.N }, (_, k) => {
    const left = Math.floor(k / rows) * width;
    const top = (k % rows) * height;
    return { left: left + 46, right: left + width - 8, top: top + 12, bottom: top + height - 8 };
  });
  return { boxes, rows };
}

function attentionRange(view) {
  const { attention } = shownRun(view);
  let [low, high] = [0, 0];
  for (const value of attention.low) if (value < low) low = value;
  for (const value of attention.high) if (value > high) high = value;
  for (const value of attention.onTruth) [low, high] = [Math.min(low, value), Math.max(high, value)];
  if (view.task.truth) for (const weight of view.task.truth.weights) high = Math.max(high, weight);
  if (isShort(view.task)) {
    const margin = 0.08 * (high - low || 1);
    return [low - margin, high + margin];
  }
  return [Math.max(Math.min(1.3 * low, -0.001), -3), Math.min(1.2 * high, 3)];
}

export const attention = {
  draw(canvas, view) {
    const { task, style } = view;
    const run = shownRun(view);
    const { context, height } = prepare(canvas, style.paper);
    const { boxes, rows } = attentionLayout(canvas, task);
    const range = attentionRange(view);
    const color = style[`run${view.state.view}`];
    boxes.forEach((box, k) => {
      const last = k % rows === rows - 1 || k === task.N - 1;
      const scale = isShort(task) ? "linear" : "root";
      const map = axes(context, box, {
        x: [0, task.T],
        y: range,
        style,
        scale,
        yTicks: box.bottom - box.top > 60 ? 3 : 1,
        xTicks: 0,
      });
      drawColumn(context, box, map, k, run.attention, task, style, color);
      context.fillStyle = style.ink;
      context.textAlign = "left";
      context.textBaseline = "top";
      context.fillText(`after ${task.names ? `“${symbol(task, k)}”` : `token ${symbol(task, k)}`}`, box.left + 5, box.top - 10);
      if (last) labelPositions(context, box, map, task, style, height);
    });
  },
  at(x, y, canvas, view) {
    const { task } = view;
    const { boxes } = attentionLayout(canvas, task);
    const k = boxes.findIndex((box) => x >= box.left - 6 && x <= box.right + 6 && y >= box.top - 12 && y <= box.bottom + 8);
    if (k < 0) return null;
    const box = boxes[k];
    const { attention: found } = shownRun(view);
    const where = ((x - box.left) / (box.right - box.left)) * task.T;
    if (task.truth) {
      const mine = nearestTrue(task, k, where, (8 / (box.right - box.left)) * task.T);
      if (mine !== null) {
        const { positions, weights } = task.truth;
        return `Position ${positions[mine]}, which token ${k} attends to, has the true weight q = ${short(weights[mine])} and the learned weight a = ${short(found.onTruth[mine])}.`;
      }
    }
    const bin = Math.min(Math.max(Math.floor((where / task.T) * found.bins), 0), found.bins - 1);
    const cell = k * found.bins + bin;
    const from = Math.floor((bin * task.T) / found.bins);
    const to = Math.floor(((bin + 1) * task.T) / found.bins);
    if (task.names) {
      return `After “${symbol(task, k)}”, the symbol at lag ${task.T + 1 - from} has attention ${short(found.high[cell])}. Lag 1 is the current symbol.`;
    }
    if (to - from === 1) return `Position ${from}, which token ${k} should ignore, has attention ${short(found.high[cell])}.`;
    return `Positions ${from} to ${to - 1}, which token ${k} should ignore, have attention from ${short(found.low[cell])} to ${short(found.high[cell])}.`;
  },
};

attention.stops = (canvas, view) => {
  const { task } = view;
  const { boxes } = attentionLayout(canvas, task);
  const across = (box, t) => box.left + ((t + 0.5) / task.T) * (box.right - box.left);
  const places = (k) =>
    task.truth ? [...task.truth.positions.slice(k * task.sparsity, (k + 1) * task.sparsity)] : [...Array(task.T).keys()];
  return boxes.flatMap((box, k) => places(k).map((t) => [across(box, t), (box.top + box.bottom) / 2]));
};

function nearestTrue(task, k, where, reach) {
  let best = null;
  for (let j = k * task.sparsity; j < (k + 1) * task.sparsity; j++) {
    const away = Math.abs(task.truth.positions[j] + 0.5 - where);
    if (away <= reach && (best === null || away < Math.abs(task.truth.positions[best] + 0.5 - where))) best = j;
  }
  return best;
}

function drawColumn(context, box, map, k, found, task, style, color) {
  const { bins, low, high, square } = found;
  const wide = (box.right - box.left) / bins;
  const zero = map.y(0);
  for (let bin = 0; bin < bins; bin++) {
    const cell = k * bins + bin;
    if (!(high[cell] >= low[cell])) continue;
    const x = box.left + bin * wide;
    if (isShort(task)) {
      context.fillStyle = task.names ? color : style.core;
      const gap = Math.max(1, wide * 0.7);
      context.fillRect(
        x + (wide - gap) / 2,
        Math.min(zero, map.y(high[cell])),
        gap,
        Math.max(1, Math.abs(map.y(high[cell]) - zero)),
      );
      continue;
    }
    context.fillStyle = style.band;
    const top = map.y(high[cell]);
    context.fillRect(x, top, Math.max(wide, 1), Math.max(1, map.y(low[cell]) - top));
    context.fillStyle = style.core;
    const [up, down] = [map.y(Math.min(square[cell], high[cell])), map.y(Math.max(-square[cell], low[cell]))];
    context.fillRect(x, up, Math.max(wide, 1), Math.max(1, down - up));
  }
  context.strokeStyle = style.soft;
  context.lineWidth = 1;
  line(context, box.left, zero, box.right, zero);
  if (!task.truth) return;
  for (let j = k * task.sparsity; j < (k + 1) * task.sparsity; j++) {
    const x = map.x(task.truth.positions[j] + 0.5);
    context.strokeStyle = color;
    context.lineWidth = 2.5;
    line(context, x, zero, x, map.y(found.onTruth[j]));
    dot(context, x, map.y(task.truth.weights[j]), 5.5, null, style.truth, 2);
    dot(context, x, map.y(found.onTruth[j]), 3.5, color);
  }
}

function labelPositions(context, box, map, task, style, height) {
  context.fillStyle = style.soft;
  context.textBaseline = "bottom";
  if (task.names) {
    const every = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512].find((step) => (step * (box.right - box.left)) / task.T >= 24) ?? 1024;
    context.textAlign = "center";
    for (let lag = every; lag <= task.T + 1; lag += every) {
      if (lag >= 2)
        context.fillText(lag === Math.max(every, 2) ? `lag ${lag}` : String(lag), map.x(task.T + 1.5 - lag), height - 1);
    }
    return;
  }
  context.textAlign = "left";
  context.fillText("position 0", box.left, height - 1);
  context.textAlign = "right";
  context.fillText(`position ${(task.T - 1).toLocaleString("en")}`, box.right, height - 1);
}

// ---------------------------------------------------------------------------------------------------- V beside P

/** Whether V stands above P instead of beside it: where there are many tokens, and room. */
export function stacked(task) {
  return Boolean(task.truth) && task.N > 6 && innerWidth >= 760;
}

function matrixLayout(canvas, task) {
  const count = task.truth ? 2 : 1;
  const [across, down] = stacked(task) ? [1, count] : [count, 1];
  const left = task.names ? 12 + 6.5 * Math.max(...task.names.map((name) => Math.min(name.length, 10))) : 24;
  const wide = (canvas.clientWidth - left - 2 - 14 * (across - 1)) / across;
  const size = Math.min(wide, (canvas.clientHeight - 36 * down) / down);
  return Array.from({ length: count }, (_, i) => ({
    left: left + (stacked(task) ? 0 : i * (size + 14)),
    top: 18 + (stacked(task) ? i * (size + 36) : 0),
    size,
  }));
}

export const matrices = {
  draw(canvas, view) {
    const { task, style } = view;
    const { context } = prepare(canvas, style.paper);
    const shown = [
      ["V, learned", shownRun(view).V],
      ["P, the truth", task.truth?.P],
    ];
    const largest = (task.truth?.P ?? shownRun(view).V).reduce((most, value) => Math.max(most, value), 0);
    matrixLayout(canvas, task).forEach(({ left, top, size }, i) => {
      const [title, M] = shown[i];
      context.fillStyle = style.ink;
      context.textAlign = "left";
      context.textBaseline = "bottom";
      context.fillText(title, left, top - 3);
      const cell = size / task.N;
      M.forEach((value, index) => {
        const x = left + (index % task.N) * cell;
        const y = top + Math.floor(index / task.N) * cell;
        const { fill, ink } = shade(value / largest);
        context.fillStyle = fill;
        context.fillRect(x, y, cell + 0.5, cell + 0.5);
        if (cell >= 30) {
          context.fillStyle = ink;
          context.textAlign = "center";
          context.textBaseline = "middle";
          context.fillText(
            value
              .toFixed(2)
              .replace(/^-(0\.00)$/, "$1")
              .replace("-", "−"),
            x + cell / 2,
            y + cell / 2,
          );
        }
      });
      labelCells(context, task, style, { left, top, cell, first: i === 0 || stacked(task) });
    });
  },
  at(x, y, canvas, view) {
    const { task } = view;
    for (const [i, { left, top, size }] of matrixLayout(canvas, task).entries()) {
      const m = Math.floor(((x - left) / size) * task.N);
      const n = Math.floor(((y - top) / size) * task.N);
      if (m < 0 || n < 0 || m >= task.N || n >= task.N) continue;
      const at = n * task.N + m;
      const name = i === 0 ? "V" : "P";
      const value = i === 0 ? shownRun(view).V[at] : task.truth.P[at];
      const truth = task.truth && i === 0 ? `; the true value is ${short(task.truth.P[at])}` : "";
      return `${name}[${symbol(task, n)}, ${symbol(task, m)}] = ${short(value)} says how likely ${symbol(task, n)} is to follow when the attended token is ${symbol(task, m)}${truth}.`;
    }
    return null;
  },
};

matrices.stops = (canvas, { task }) =>
  matrixLayout(canvas, task).flatMap(({ left, top, size }) => {
    const cell = size / task.N;
    return Array.from({ length: task.N ** 2 }, (_, i) => [
      left + ((i % task.N) + 0.5) * cell,
      top + (Math.floor(i / task.N) + 0.5) * cell,
    ]);
  });

function labelCells(context, task, style, { left, top, cell, first }) {
  context.fillStyle = style.soft;
  const skip = Math.ceil(16 / cell);
  for (let n = 0; n < task.N; n += skip) {
    context.textAlign = "center";
    context.textBaseline = "top";
    context.fillText(symbol(task, n), left + (n + 0.5) * cell, top + task.N * cell + 3);
    if (!first) continue;
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillText(symbol(task, n), left - 5, top + (n + 0.5) * cell);
  }
}
