// Curves against steps: one quantity a panel, all runs in it, the stages marked, the population's prediction as a thin line.
import { COLOURS } from "./state.mjs";
import { axes, DASHES, line, prepare, short, trace } from "./plots.mjs";

const boxOf = (canvas) => ({ left: 44, right: canvas.clientWidth - 8, top: 16, bottom: canvas.clientHeight - 32 });

/** A panel for the column `name` of the history; `words` say what it is. */
export function curve(name, words) {
  return {
    draw(canvas, view) {
      const { style } = view;
      const { context } = prepare(canvas, style.paper);
      const box = boxOf(canvas);
      const prediction = view.task.predictions[view.state.view] ?? [];
      const { log } = view;
      const range = yRange(name, view, prediction, log);
      const map = axes(context, box, {
        x: [0, lastStep(view)],
        y: range,
        style,
        scale: log ? "log" : "linear",
        xLabel: "steps",
        yTicks: 4,
      });
      drawStages(context, box, map, view);
      if (prediction.length && name in prediction[0]) {
        trace(
          context,
          box,
          map,
          prediction.map((row) => row.step),
          prediction.map((row) => row[name]),
          { color: style.theory, width: 1 },
        );
      }
      view.runs.forEach((run, i) => {
        trace(context, box, map, run.history.step, run.history[name] ?? [], { color: style[`run${i}`], dash: DASHES[i] });
      });
      if (view.cursor !== undefined) {
        context.strokeStyle = style.ink;
        line(context, map.x(view.cursor), box.top, map.x(view.cursor), box.bottom);
      }
    },
    stops(canvas, view) {
      const box = boxOf(canvas);
      const steps = Array.from({ length: 21 }, (_, i) => (i / 20) * Math.max(...view.runs.map((run) => run.history.step.at(-1))));
      return steps.map((step) => [box.left + (step / lastStep(view)) * (box.right - box.left), (box.top + box.bottom) / 2]);
    },
    at(x, y, canvas, view) {
      const box = boxOf(canvas);
      if (x < box.left || x > box.right) return null;
      const step = ((x - box.left) / (box.right - box.left)) * lastStep(view);
      const values = view.runs.map((run, i) => {
        const at = run.history.step.findLastIndex((s) => s <= step);
        return at < 0 ? null : `${COLOURS[i]}: ${short(run.history[name][at])}`;
      });
      return `${words} At step ${Math.round(step)}: ${values.filter(Boolean).join(", ")}.`;
    },
  };
}

/** The x axis ends where the longest run will end, as far as that is known, and not before the steps taken. */
function lastStep(view) {
  const planned = view.task.stages.map((stages, i) => {
    const from = view.runs[i]?.from ?? 0;
    const open = stages.some((stage) => stage.stopAt !== null); // ends when its signal is there: unknown beforehand
    return open ? 0 : from + stages.reduce((sum, stage) => sum + stage.steps, 0);
  });
  const taken = view.runs.map((run) => run.history.step.at(-1) * (run.finished || run.row !== undefined ? 1 : 1.15));
  return Math.max(20, ...taken, ...(view.runs.every((run) => run.finished) ? [] : planned));
}

function yRange(name, view, prediction, log) {
  let low = Infinity;
  let high = -Infinity;
  const see = (value) => {
    if (!Number.isFinite(value)) return;
    low = Math.min(low, value);
    high = Math.max(high, value);
  };
  for (const run of view.runs) for (const value of run.history[name] ?? []) see(value);
  for (const row of prediction) see(row[name]);
  if (!(high >= low)) return [0, 1];
  if (log) return [Math.max(low * 0.8, high * 1e-4, 1e-6), high * 1.2 || 1];
  const tight = name === "loss" || name === "batch_loss"; // far from 0, and small changes matter
  const floor = tight ? low - 0.08 * (high - low) : Math.min(0, low);
  return [floor, high + 0.08 * (high - floor || 1)];
}

function drawStages(context, box, map, view) {
  const run = view.runs[view.state.view];
  const { stage, step } = run.history;
  context.fillStyle = view.style.soft;
  context.strokeStyle = view.style.soft;
  context.lineWidth = 1;
  context.textBaseline = "top";
  context.textAlign = "left";
  let before = null;
  let free = -Infinity; // where the last label ends
  step.forEach((at, i) => {
    if (stage[i] === before) return;
    const x = before === null ? box.left : Math.round(map.x(step[i - 1] ?? at)) + 0.5;
    if (before !== null) {
      context.setLineDash([3, 3]);
      line(context, x, box.top, x, box.bottom);
      context.setLineDash([]);
    }
    const names = view.task.stages[view.state.view];
    const inPhase = at >= run.from && names[stage[i] - 1];
    const label = inPhase ? names[stage[i] - 1].name : String(stage[i]);
    const words = { first: "first step", last: "last step", softmax: "" }[label] ?? `stage ${label}`;
    const { width } = context.measureText(words);
    const start = Math.min(x + 4, box.right + 6 - width); // whole, even where the stage begins at the edge
    if (start >= free) {
      context.fillText(words, start, box.top - 14);
      free = start + width + 6;
    }
    before = stage[i];
  });
}
