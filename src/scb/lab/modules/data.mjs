// Own data: a text or a column becomes tokens, windows of them become samples; what a learner knows of them beforehand.

export const MOST_SYMBOLS = 32;
const LEAST = 50; // symbols of a text that is worth training on
const LEAST_SHARE = 0.01; // the steps on a symbol's column are divided by its share: for a rare one they would be wild

/** How a text is most likely meant: one symbol per line, or a letter each. */
export function guessUnit(text) {
  const lines = text.trim().split(/\r?\n/);
  const short = lines.filter((line) => line.trim().length <= 12 && !/\s/.test(line.trim()));
  return lines.length >= 20 && short.length >= 0.9 * lines.length ? "lines" : "characters";
}

/** Why a text is too short to learn from; null if it is not. */
export function tooShort(length) {
  const count = `the text has ${length} symbol${length === 1 ? "" : "s"}`;
  return length < LEAST ? `${count}, but at least ${LEAST} are needed: with fewer symbols, every lag seems to matter by chance` : null;
}

/**
 * The tokens of a text and the symbols they stand for. Characters: letters of any script without case, and one space for everything
 * between them; where most of a text is no letters (emoji, signs), every character counts. Symbols that are at least a hundredth of the text are kept, the others become one.
 */
export function encode(text, unit) {
  const symbols = split(text, unit);
  if (symbols.length < 4) throw new Error(tooShort(symbols.length)); // where nothing could be computed at all
  const counts = new Map();
  for (const symbol of symbols) counts.set(symbol, (counts.get(symbol) ?? 0) + 1);
  const byCount = [...counts.keys()].sort((x, y) => counts.get(y) - counts.get(x) || (x < y ? -1 : 1));
  if (byCount.length < 2) throw new Error(`the text has one symbol only, "${byCount[0]}", but at least 2 distinct symbols are needed`);
  const common = byCount.filter((symbol, i) => i === 0 || counts.get(symbol) >= LEAST_SHARE * symbols.length);
  const kept = byCount.length > MOST_SYMBOLS ? common.slice(0, MOST_SYMBOLS - 1) : common;
  kept.sort();
  const names = kept.length < byCount.length ? [...kept, "…"] : kept;
  const code = new Map(kept.map((symbol, i) => [symbol, i]));
  return { tokens: Uint8Array.from(symbols, (symbol) => code.get(symbol) ?? names.length - 1), names };
}

function split(text, unit) {
  if (unit === "lines")
    return text
      .split(/\r?\n/)
      .map((line) => line.trim())
      .filter(Boolean);
  if (unit === "words")
    return text
      .normalize("NFC")
      .toLowerCase()
      .split(/[^\p{L}\p{M}\p{N}\p{S}'’]+/u)
      .filter(Boolean);
  const characters = graphemes(text.normalize("NFC").toLowerCase());
  const visible = characters.filter((one) => one.trim());
  const isLetter = (one) => /[\p{L}\p{N}]/u.test(one);
  const counts = visible.filter(isLetter).length >= visible.length / 2 ? isLetter : (one) => one.trim() !== "";
  const symbols = [];
  for (const one of characters) {
    if (counts(one)) symbols.push(one);
    else if (symbols.length && symbols.at(-1) !== "␣") symbols.push("␣");
  }
  if (symbols.at(-1) === "␣") symbols.pop();
  return symbols;
}

// What readers see as one character: a letter with its accents, an emoji of several parts.
function graphemes(text) {
  return Array.from(new Intl.Segmenter(undefined, { granularity: "grapheme" }).segment(text), ({ segment }) => segment);
}

/** What the learner knows of a sequence: μ by counting, and a K_P by the lag that says most (both set step sizes only). */
export function knowledge(tokens, N, T, sparsity) {
  const mu = new Float64Array(N);
  for (const token of tokens) mu[token] += 1;
  const smooth = tokens.length + N;
  for (let n = 0; n < N; n++) mu[n] = (mu[n] + 1) / smooth;
  let K_P = 0;
  for (let lag = 2; lag <= T + 1; lag++) K_P = Math.max(K_P, lagStrength(tokens, mu, lag));
  return { mu, N, T, sparsity, K_P: Math.max(K_P, 1e-3), K_Q: 1 / sparsity, weightThreshold: 1 / (6 * sparsity) };
}

/** ‖P_lag − μ1ᵀ‖_μ² of the transition from the symbol `lag` back to the next one, less what chance alone would give. */
export function lagStrength(tokens, mu, lag) {
  const N = mu.length;
  const count = tokens.length - lag;
  if (count < 1) return 0;
  const joint = new Float64Array(N * N);
  for (let i = lag; i < tokens.length; i++) joint[tokens[i] * N + tokens[i - lag]] += 1 / count;
  let strength = 0;
  for (let n = 0; n < N; n++) for (let m = 0; m < N; m++) strength += (joint[n * N + m] / mu[m] - mu[n]) ** 2 * mu[m];
  return Math.max(strength - ((N - 1) * (1 - mu.reduce((sum, x) => sum + x * x, 0))) / count, 0);
}

/** What is measured on own data: the mean loss over windows spread evenly through the sequence. */
export function dataMeasure(tokens, mu, T, most = 1500) {
  const N = mu.length;
  const windows = tokens.length - T - 1;
  const stride = Math.max(1, Math.floor(windows / most));
  const mass = new Float64Array(N);
  return (V, A) => {
    let loss = 0;
    let count = 0;
    for (let start = 0; start < windows; start += stride) {
      const begin = tokens[start + T] * T;
      mass.fill(0);
      for (let t = 0; t < T; t++) mass[tokens[start + t]] += A[begin + t];
      for (let n = 0; n < N; n++) {
        let r = n === tokens[start + T + 1] ? -1 : 0;
        for (let m = 0; m < N; m++) r += V[n * N + m] * mass[m];
        loss += 0.5 * r * r;
      }
      count++;
    }
    return { loss: loss / count };
  };
}

/** The entries of A that stand out most, strongest first: { token, lag, weight }. Lag 1 is the current symbol; position t is lag T + 1 − t. */
export function strongestLags(A, N, T, most = 12) {
  const entries = [];
  for (let k = 0; k < N; k++) for (let t = 0; t < T; t++) entries.push({ token: k, lag: T + 1 - t, weight: A[k * T + t] });
  return entries.sort((x, y) => Math.abs(y.weight) - Math.abs(x.weight)).slice(0, most);
}
