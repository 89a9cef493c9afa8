// The signal plane: how far V and A have come, with the flow of the population process behind them.
import { latest } from "./player.mjs";
import { axes, DASHES, dot, line, prepare, short, trace } from "./plots.mjs";
import { populationDrift } from "./theory.mjs";

// Half the width of the plane: as far as the runs have gone, and at least what shows the truth and its mirror.
function reach({ runs }) {
  let most = 1.25;
  for (const { history } of runs) {
    for (const values of [history.alpha_V, history.alpha_A])
      for (const value of values) if (Math.abs(value) > most) most = Math.abs(value);
  }
  return Math.min(1.2 * most, 4);
}

const planeBox = (canvas) => ({ left: 34, right: canvas.clientWidth - 8, top: 16, bottom: canvas.clientHeight - 34 });

export const plane = {
  draw(canvas, view) {
    const { task, style } = view;
    const { context } = prepare(canvas, style.paper);
    const box = planeBox(canvas);
    const far = reach(view);
    const map = axes(context, box, { x: [-far, far], y: [-far, far], style, xLabel: "α_V", yLabel: "α_A" });
    drawFlow(context, box, map, task, style, far);
    context.strokeStyle = style.soft;
    context.lineWidth = 1;
    line(context, map.x(0), box.top, map.x(0), box.bottom);
    line(context, box.left, map.y(0), box.right, map.y(0));
    context.fillStyle = style.ink;
    context.textBaseline = "bottom";
    for (const [value, words] of [
      [1, "the truth"],
      [-1, "its mirror"],
    ]) {
      dot(context, map.x(value), map.y(value), 6, null, value > 0 ? style.truth : style.soft, 2);
      context.textAlign = value > 0 ? "right" : "left";
      context.fillText(words, map.x(value) - 9 * value, map.y(value) + (value > 0 ? -4 : 18));
    }
    const rows = view.task.predictions[view.state.view] ?? [];
    const style1 = { color: style.theory, width: 1 };
    trace(
      context,
      box,
      map,
      rows.map((row) => row.alpha_V),
      rows.map((row) => row.alpha_A),
      style1,
    );
    view.runs.forEach((run, i) => {
      const { alpha_V, alpha_A } = run.history;
      trace(context, box, map, alpha_V, alpha_A, { color: style[`run${i}`], width: 2.2, dash: DASHES[i] });
      if (alpha_V.length)
        dot(context, map.x(latest(run, "alpha_V")), map.y(latest(run, "alpha_A")), 4.5, style[`run${i}`], style.paper);
    });
  },
  at(x, y, canvas, view) {
    const box = planeBox(canvas);
    if (x < box.left || x > box.right || y < box.top || y > box.bottom) return null;
    const run = view.runs[view.state.view];
    const here = `α_V = ${short(latest(run, "alpha_V"))}, α_A = ${short(latest(run, "alpha_A"))}`;
    return `The run is at ${here}. The arrows show where the population process would go from each point. The truth is at (1, 1), and its mirror image is at (−1, −1).`;
  },
};

plane.stops = (canvas) => [[canvas.clientWidth / 2, canvas.clientHeight / 2]];

function drawFlow(context, box, map, task, style, far) {
  const across = Math.max(9, Math.floor((box.right - box.left) / 30));
  context.strokeStyle = style.flow;
  context.lineWidth = 1;
  for (let i = 0; i < across; i++) {
    for (let j = 0; j < across; j++) {
      const v = far * ((2 * i + 1) / across - 1);
      const a = far * ((2 * j + 1) / across - 1);
      const [driftV, driftA] = populationDrift(v, a, task.K_P, task.K_Q, task.T);
      const [dx, dy] = [driftV / task.K_Q, -driftA / task.K_P]; // η_V = η/K_Q, η_A = η/K_P
      const size = Math.hypot(dx, dy);
      if (size < 1e-9) continue;
      const length = (3 + 9 * Math.min(1, size)) / size;
      arrow(context, map.x(v), map.y(a), dx * length, dy * length);
    }
  }
}

function arrow(context, x, y, dx, dy) {
  const [tipX, tipY] = [x + dx / 2, y + dy / 2];
  line(context, x - dx / 2, y - dy / 2, tipX, tipY);
  line(context, tipX, tipY, tipX - 0.35 * dx + 0.2 * dy, tipY - 0.35 * dy - 0.2 * dx);
  line(context, tipX, tipY, tipX - 0.35 * dx - 0.2 * dy, tipY - 0.35 * dy + 0.2 * dx);
}
