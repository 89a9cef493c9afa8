// Going back and forth: the pictures that have come are kept, thinned out where there are many, and the page can show any of them.
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
