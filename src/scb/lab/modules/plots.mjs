// Drawing on a canvas: sharp on any screen, in the colours of the page, with axes that one can read.

const STYLE_NAMES = ["ink", "soft", "faint", "paper", "truth", "run0", "run1", "run2", "run3", "theory", "band", "core", "flow"];
export const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]]; // a second sign beside colour for each run

/** The colours of the page as it looks now, light or dark. */
export function readStyle() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(STYLE_NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** The context of a canvas, cleared, in CSS pixels, and its size. */
export function prepare(canvas, background) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = background;
  context.fillRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  context.lineJoin = "round";
  return { context, width, height };
}

/** About `count` round values between low and high. */
export function ticks(low, high, count) {
  const span = high - low;
  // Below the rounding of its ends a span has no values between them
  if (!(span > 1e-12 * Math.max(Math.abs(low), Math.abs(high)) && span < Infinity)) return [low];
  const raw = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * span; i++) found.push(i * step);
  return found;
}

/** A number as short as it can be read. */
export function short(value) {
  if (!Number.isFinite(value)) return "–";
  return shortened(value).replaceAll("-", "−");
}

function shortened(value) {
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size >= 1e4) return value.toLocaleString("en", { maximumFractionDigits: 0 });
  if (size >= 1) return String(Number(value.toFixed(size >= 100 ? 0 : 2)));
  return size >= 1e-3 ? String(Number(value.toPrecision(3))) : value.toExponential(1);
}

const SCALES = {
  linear: (value) => value,
  log: (value) => Math.log10(Math.max(value, 1e-12)),
  root: (value) => Math.cbrt(value), // shows small entries of either sign beside large ones
};
const ROOT_TICKS = [-1, -0.1, -0.01, -0.001, 0, 0.001, 0.01, 0.1, 0.5, 1];

/** Axes in a box: maps values to pixels and draws grid and labels. The y axis is linear, in powers of ten, or in cube roots. */
export function axes(context, box, { x, y, style, scale = "linear", xTicks = 5, yTicks = 4, xLabel = "", yLabel = "" }) {
  const toY = SCALES[scale];
  const [low, high] = [toY(y[0]), toY(y[1])];
  const map = {
    x: (value) => box.left + ((value - x[0]) / (x[1] - x[0] || 1)) * (box.right - box.left),
    y: (value) => box.bottom - ((toY(value) - low) / (high - low || 1)) * (box.bottom - box.top),
  };
  context.strokeStyle = style.faint;
  context.fillStyle = style.soft;
  context.lineWidth = 1;
  const marks = {
    linear: () => ticks(y[0], y[1], yTicks),
    log: () =>
      ticks(low, high, yTicks)
        .filter(Number.isInteger)
        .map((power) => 10 ** power),
    root: () => ROOT_TICKS.filter((value) => value >= y[0] && value <= y[1]),
  }[scale]();
  context.textAlign = "right";
  context.textBaseline = "middle";
  let written = Infinity;
  for (const value of marks) {
    const at = Math.round(map.y(value)) + 0.5;
    line(context, box.left, at, box.right, at);
    if (Math.abs(written - at) < 11) continue;
    context.fillText(short(value), box.left - 5, at);
    written = at;
  }
  context.textBaseline = "top";
  let free = -Infinity; // where the last label ends
  for (const value of xTicks ? ticks(x[0], x[1], xTicks) : []) {
    const at = Math.round(map.x(value)) + 0.5;
    line(context, at, box.bottom, at, box.bottom + 4);
    const { width } = context.measureText(short(value));
    const start = Math.min(at - width / 2, box.right + 6 - width);
    if (start < free) continue;
    context.textAlign = "left";
    context.fillText(short(value), start, box.bottom + 6);
    free = start + width + 6;
  }
  if (xLabel) {
    context.textAlign = "right";
    context.fillText(xLabel, box.right, box.bottom + 19);
  }
  if (yLabel) {
    context.textAlign = "left";
    context.textBaseline = "bottom";
    context.fillText(yLabel, box.left, box.top - 4);
  }
  return map;
}

export function line(context, x0, y0, x1, y1) {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

/** A polyline through (xs[i], ys[i]), broken where a value is missing, clipped to a box. */
export function trace(context, box, map, xs, ys, { color, width = 1.8, dash = [] }) {
  context.save();
  context.beginPath();
  context.rect(box.left, box.top - 2, box.right - box.left + 2, box.bottom - box.top + 4);
  context.clip();
  context.strokeStyle = color;
  context.lineWidth = width;
  context.setLineDash(dash);
  context.beginPath();
  let pen = false;
  const stride = Math.max(1, Math.floor(xs.length / 2000)); // more points than pixels say nothing
  for (let i = 0; i < xs.length; i += stride) {
    if (!Number.isFinite(ys[i])) {
      pen = false;
      continue;
    }
    if (pen) context.lineTo(map.x(xs[i]), map.y(ys[i]));
    else context.moveTo(map.x(xs[i]), map.y(ys[i]));
    pen = true;
  }
  context.stroke();
  context.restore();
}

export function dot(context, x, y, radius, fill, stroke = null, width = 1.5) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  if (fill) {
    context.fillStyle = fill;
    context.fill();
  }
  if (stroke) {
    context.strokeStyle = stroke;
    context.lineWidth = width;
    context.stroke();
  }
}

// Cividis at nine points: dark to light, the same for the colour-blind.
const CIVIDIS = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"].map(
  (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)),
);

/** A colour for a share between 0 and 1; and black or white, whichever can be read on it. */
export function shade(share) {
  const at = Math.min(Math.max(share, 0), 1) * (CIVIDIS.length - 1);
  const i = Math.min(Math.floor(at), CIVIDIS.length - 2);
  const mixed = CIVIDIS[i].map((value, channel) => Math.round(value + (at - i) * (CIVIDIS[i + 1][channel] - value)));
  return { fill: `rgb(${mixed.join()})`, ink: share > 0.55 ? "#000" : "#fff" };
}
