// The bench: runs a prompt and its continuation some times, plots the speed over time, and exports what was measured.

import { measure } from './bench-run.js';
import { byId, make, saveJson } from './dom.js';
import { duration, rate } from './format.js';
import { makePlot } from './plot.js';
import { median, ratesOverTime } from './rates.js';
import { makeRuns } from './runs.js';

/** How often the plot is drawn while a run is under way: drawing takes time that the run would have. */
const DRAW_EVERY_MS = 250;

/** Builds the view for an engine's holder. `onSpeed(tokensPerSecond)` hears how fast each run decoded. */
export function makeBench({ engine, onSpeed }) {
  const plot = makePlot(byId('bench-plot'));
  let report = null;

  async function start(signal) {
    const { edge, title } = engine;
    report = reportOf(edge, title, settings());
    show();
    try {
      for (let run = 1; run <= report.settings.runs; run += 1) await addRun(edge, run, signal);
      byId('bench-state').textContent = 'Done.';
    } catch (error) {
      byId('bench-state').textContent = signal.aborted ? 'Stopped.' : '';
      show();
      throw error;
    }
  }

  async function addRun(edge, run, signal) {
    const { runs, decodeTokens } = report.settings;
    byId('bench-state').textContent = `Run ${run} of ${runs}: reading the prompt`;
    let drawnMs = 0;
    const onTimes = (times) => {
      if (performance.now() - drawnMs < DRAW_EVERY_MS) return;
      drawnMs = performance.now();
      byId('bench-state').textContent = `Run ${run} of ${runs}: ${times.length} of ${decodeTokens} tokens`;
      show({ times, usage: { completionTokens: times.length }, stats: null });
    };
    report.runs.push(await measure(edge, { run, ...report.settings, signal, onTimes }));
    onSpeed(report.runs.at(-1).stats.decodeTokensPerSecond);
    show();
  }

  /** Shows the finished runs, and the one under way. */
  function show(live = null) {
    const runs = live ? [...report.runs, live] : report.runs;
    byId('bench-results').hidden = runs.length === 0;
    if (runs.length === 0) return;
    drawRuns(plot, runs);
    byId('bench-rows').replaceChildren(...report.runs.map(rowOf), ...(report.runs.length > 1 ? [medianRow(report.runs)] : []));
    byId('bench-table').hidden = report.runs.length === 0;
  }

  byId('bench-export').addEventListener('click', () => saveJson(`bench ${report.backend} ${report.date.slice(0, 10)}`, exported(report)));
  makeRuns({
    engine, view: 'bench',
    begin: () => start,
    onChange: (isBusy) => { byId('bench-export').disabled = isBusy || !report || report.runs.length === 0; },
  });
}

function settings() {
  const numberOf = (id) => Number(byId(id).value);
  return { promptTokens: numberOf('bench-prompt'), decodeTokens: numberOf('bench-decode'), runs: numberOf('bench-runs') };
}

/** What is known before the first run. */
function reportOf(edge, model, given) {
  const { backend, reason, device, adapter, wasmModule, threads, contextTokens, variants } = edge.diagnostics;
  // The prompt's beginning and a template-less text may take a few tokens more than was asked for.
  const promptTokens = Math.max(1, Math.min(given.promptTokens, contextTokens - given.decodeTokens - 16));
  return {
    date: new Date().toISOString(),
    model,
    backend,
    reason,
    device,
    adapter,
    wasmModule,
    threads,
    contextTokens,
    variants,
    userAgent: navigator.userAgent,
    processors: navigator.hardwareConcurrency,
    settings: { ...given, promptTokens },
    runs: [],
  };
}

/** The report with its medians, and the speed over time of every run in place of the pieces' times. */
function exported(report) {
  const of = (name) => median(report.runs.map((run) => run.stats[name]));
  return {
    ...report,
    runs: report.runs.map(({ times, ...run }) => ({ ...run, overTime: pointsOf({ times, ...run }).map(({ ms, rate: perSecond }) => ({ ms: Math.round(ms), tokensPerSecond: Number(perSecond.toFixed(2)) })) })),
    medians: { promptTokensPerSecond: of('promptTokensPerSecond'), decodeTokensPerSecond: of('decodeTokensPerSecond'), timeToFirstTokenMs: of('timeToFirstTokenMs') },
  };
}

const pointsOf = ({ times, usage }) => ratesOverTime(times, usage.completionTokens);

function drawRuns(plot, runs) {
  const last = runs.at(-1);
  const promptMs = last.times[0] ?? 0;
  const lines = runs.map((run) => ({ className: run === last ? 'latest' : 'earlier', points: pointsOf(run).map(({ ms, rate: perSecond }) => [ms / 1000, perSecond]) }));
  const speeds = lines.at(-1).points.map(([, y]) => y);
  const label = speeds.length === 0
    ? 'Tokens per second over time: too few tokens yet'
    : `Tokens per second over time: the latest run from ${rate(Math.min(...speeds))} to ${rate(Math.max(...speeds))}, first token after ${duration(promptMs)}`;
  plot.draw({ label, xLabel: 'seconds since the start of a run', yLabel: 'tokens per second, decoding', lines, spans: [{ from: 0, to: promptMs / 1000, text: 'prompt' }] });
}

function rowOf({ usage, stats }, index) {
  return tableRow([`Run ${index + 1}`, `${usage.promptTokens} → ${usage.completionTokens}`, rate(stats.promptTokensPerSecond), rate(stats.decodeTokensPerSecond), duration(stats.timeToFirstTokenMs)]);
}

function medianRow(runs) {
  const of = (name) => median(runs.map((run) => run.stats[name]));
  return tableRow(['Median', '', rate(of('promptTokensPerSecond')), rate(of('decodeTokensPerSecond')), duration(of('timeToFirstTokenMs'))], 'median');
}

function tableRow([head, ...cells], className = '') {
  return make('tr', { className }, make('th', { scope: 'row', textContent: head }), ...cells.map((text) => make('td', { textContent: text })));
}
