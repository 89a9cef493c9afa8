// What has come of the runs: their histories, and pictures for going back and forth. Pictures are thinned out where there are many.
const MOST = 600;

/** What has been seen of an experiment: a frame per step, in order. */
export function createTape() {
  return { frames: [], cursor: null, replaying: false };
}

/** Keep what a frame shows of each run. */
export function record(tape, step, runs) {
  const { frames } = tape;
  const kept = runs.map(({ V, attention, lags, extra }) => ({ V, attention, lags, extra }));
  while (frames.length && frames.at(-1).step >= step) frames.pop(); // a flip changes a step that has been seen
  frames.push({ step, runs: kept });
  if (frames.length > MOST) tape.frames = frames.filter((_, i) => i % 2 === 0 || i === frames.length - 1);
}

/** Go to a step; the last one is the present, where there is no cursor. */
export function seek(tape, step, present) {
  tape.cursor = step >= present ? null : Math.max(0, step);
}

/** Play the tape on by some seconds, at a speed of the page; whether the present is reached. */
export function playTape(tape, seconds, speed, present) {
  const rate = Number(speed) || Math.max(150, present / 12); // at full speed, twelve seconds for all
  seek(tape, tape.cursor + rate * seconds, present);
  tape.replaying = tape.cursor !== null;
  return !tape.replaying;
}

/** The page as it stood at the cursor, or as it stands: runs know which row of their history is shown (`row`). */
export function shown(page) {
  const { tape, runs } = page;
  if (tape.cursor === null || !tape.frames.length) return page;
  const frame = tape.frames.findLast(({ step }) => step <= tape.cursor) ?? tape.frames[0];
  const past = runs.map((run, i) => {
    const row = run.history.step.findLastIndex((step) => step <= tape.cursor);
    return { ...run, ...frame.runs[i], step: Math.min(run.step, tape.cursor), row: Math.max(row, 0) };
  });
  return { ...page, runs: past, over: false, cursor: tape.cursor };
}

/** The value of a column of a run's history where it is shown. */
export function latest(run, name) {
  const values = run.history[name];
  return values?.[run.row ?? values.length - 1];
}

/** A run of which nothing has come yet. */
export const freshRun = () => ({ history: {}, V: null, attention: null, step: 0, samples: 0, from: 0 });

/** Rows of a history; after a transfer, their steps count from `from` on. */
export function append(run, { rows, from }) {
  for (const [name, values] of Object.entries(rows)) {
    run.history[name] ??= [];
    const offset = name === "step" ? from : 0;
    for (const value of values) run.history[name].push(value + offset);
  }
}

/** Take over what a frame says of a run. */
export function absorb(run, frame) {
  append(run, frame);
  for (const name of ["step", "stage", "samples", "finished", "settled", "diverged", "from", "lags", "V", "attention"])
    run[name] = frame[name];
}
