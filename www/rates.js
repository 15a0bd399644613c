// Tokens a second over time, from when pieces of text came. Pure: it knows no clock and no elements.

/** The least span one value is taken over, unless the whole is short; shorter ones show the timer rather than the speed. */
const LEAST_WINDOW_MS = 200;
/** A value is taken over about this many pieces, so that pieces that come in bursts do not look like jumps. */
const PIECES_A_WINDOW = 10;
const MOST_POINTS = 120;

/**
 * The speed over time as `[{ ms, rate }]`, `ms` counted as the times are. `times` say when each piece came, ascending;
 * `tokens` how many tokens they hold together, since a piece may hold more than one. No points without two pieces.
 */
export function ratesOverTime(times, tokens) {
  const first = times[0];
  const last = times.at(-1);
  if (times.length < 2 || last <= first) return [];
  const perPiece = tokens / times.length;
  const span = last - first;
  const window = Math.min(span / 2, Math.max(LEAST_WINDOW_MS, (span / times.length) * PIECES_A_WINDOW));
  const count = Math.min(MOST_POINTS, Math.ceil((span - window) / (window / 4)) + 1);
  const points = [];
  for (let i = 0; i < count; i += 1) {
    const start = first + ((span - window) * i) / (count - 1);
    const end = start + window;
    const came = countAt(times, end) - countAt(times, start);
    points.push({ ms: start + window / 2, rate: (came * perPiece * 1000) / window });
  }
  return points;
}

/** How many pieces had come after the first one, with the part of the way to the next. */
function countAt(times, ms) {
  const next = times.findIndex((time) => time > ms);
  if (next < 0) return times.length - 1;
  if (next === 0) return 0;
  return next - 1 + (ms - times[next - 1]) / (times[next] - times[next - 1]);
}

/** The middle value, or the mean of the two middle ones; 0 of none. */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  if (sorted.length === 0) return 0;
  return sorted.length % 2 === 1 ? sorted[Math.floor(middle)] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Round steps for an axis from 0 to at least `most`: `{ step, end }`, at most `count` steps. */
export function axisSteps(most, count) {
  const rough = Math.max(most, Number.MIN_VALUE) / count;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * magnitude).find((candidate) => candidate >= rough * (1 - 1e-9));
  return { step, end: Math.ceil(most / step - 1e-9) * step || step };
}
