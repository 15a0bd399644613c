// From runs to figures: medians, ratios and the printed table. Pure; it knows nothing of browsers.

/**
 * The rows of one format: each engine at each thread count with the medians of its runs and `ratio`, which says how many
 * times faster `edge` with as many threads is; for `edge` itself, how many times faster it is than with its fewest threads.
 */
export function summarize(format, measured) {
  const rows = measured.map(({ engine, threads, runsOn, loadMs, runs }) => ({
    format, engine, threads, runsOn, loadMs: Math.round(loadMs),
    promptTokens: runs[0].promptTokens, decodedTokens: runs[0].decodedTokens,
    promptTokensPerSecond: median(runs.map((run) => run.promptTokensPerSecond)),
    decodeTokensPerSecond: median(runs.map((run) => run.decodeTokensPerSecond)),
    text: runs[0].text,
  }));
  const ours = rows.filter((row) => row.engine === 'edge').sort((a, b) => a.threads - b.threads);
  for (const row of rows) {
    const peer = ours.find((other) => other.threads === row.threads);
    if (row.engine === 'edge') row.ratio = row === ours[0] ? null : ratios(row, ours[0]);
    else row.ratio = peer ? ratios(peer, row) : null;
  }
  return rows;
}

/** How many times faster `a` is than `b`. */
function ratios(a, b) {
  return {
    prompt: round(a.promptTokensPerSecond / b.promptTokensPerSecond),
    decode: round(a.decodeTokensPerSecond / b.decodeTokensPerSecond),
  };
}

function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return round((sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2);
}

function round(number) {
  return Math.round(number * 100) / 100;
}

const COLUMNS = [
  { title: 'engine', left: true, of: (row) => row.engine },
  { title: 'threads', of: (row) => threadsOf(row) },
  { title: 'prompt tok/s', of: (row) => row.promptTokensPerSecond.toFixed(1) },
  { title: 'decode tok/s', of: (row) => row.decodeTokensPerSecond.toFixed(1) },
  { title: 'edge/it prompt', of: (row) => ratioOf(row, 'prompt') },
  { title: 'decode', of: (row) => ratioOf(row, 'decode') },
  { title: 'load ms', of: (row) => String(row.loadMs) },
  { title: 'runs on', left: true, of: ({ runsOn }) => [runsOn.module, runsOn.device].filter(Boolean).join(', ') },
];

/** The threads that run, and those that were asked for where they differ; a GPU has none. */
function threadsOf({ threads, runsOn }) {
  if (runsOn.threads === 0) return 'GPU';
  return runsOn.threads === threads ? String(threads) : `${runsOn.threads} of ${threads}`;
}

function ratioOf({ engine, ratio }, part) {
  if (!ratio) return '';
  return engine === 'edge' ? `(${ratio[part].toFixed(2)}x)` : `${ratio[part].toFixed(1)}x`;
}

/** What was compared, on what. */
export function heading({ browser, cpu, decode, reps, versions }) {
  const packages = Object.entries(versions).map(([name, version]) => `${name} ${version}`).join(', ');
  return `Chromium ${browser}, ${cpu}; ${packages}; ${decode} tokens decoded, medians of ${reps}`;
}

/** One format's rows as text. Ratios in brackets compare `edge` with its own first row. */
export function table(format, rows) {
  const cells = rows.map((row) => COLUMNS.map((column) => column.of(row)));
  const widths = COLUMNS.map(({ title }, index) => Math.max(title.length, ...cells.map((row) => row[index].length)));
  const line = (row) => row.map((cell, index) => (COLUMNS[index].left ? cell.padEnd(widths[index]) : cell.padStart(widths[index]))).join('  ').trimEnd();
  return [`${format}, prompt of ${rows[0].promptTokens} tokens`, line(COLUMNS.map(({ title }) => title)), ...cells.map(line)].join('\n');
}
