// Compares the package with wllama in headless Chromium: the same file, the same prompt, one thread each, in one run and
// in turns, so that a busy machine slows both. Prints a table on stderr and JSON on stdout.
// Options: --decode N (64), --reps N (3), --backends cpu,webgpu (cpu).

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { launchChromium } from '../../scripts/lib/chromium.mjs';
import { DEFAULT_MODEL, findModel } from '../../scripts/lib/models.mjs';
import { Stop, main, say } from '../../scripts/lib/shell.mjs';
import { serveSite } from '../../scripts/lib/site.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const WLLAMA = join(HERE, 'node_modules', '@wllama', 'wllama', 'esm');
const PROMPT_CHARACTERS = 620;

main(async () => {
  const { values } = parseArgs({ options: { decode: { type: 'string', default: '64' }, reps: { type: 'string', default: '3' }, backends: { type: 'string', default: 'cpu' } } });
  const [decode, reps] = [Number(values.decode), Number(values.reps)];
  if (!(decode >= 1) || !(reps >= 1)) throw new Stop('--decode and --reps are whole numbers from 1');
  const { version } = JSON.parse(readFileSync(join(WLLAMA, '..', 'package.json'), 'utf8'));
  const site = await serveSite({ extra: { '/bench/': `${HERE}/page/`, '/wllama/': `${WLLAMA}/` } });
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    page.on('pageerror', (error) => say(`bench: ${error.message}`));
    await page.goto(`${site.url}bench/`);
    await page.waitForFunction(() => 'bench' in globalThis);
    const engines = [...values.backends.split(',').map((backend) => `edge-${backend}`), 'wllama'];
    const model = new URL(`/models/${findModel(DEFAULT_MODEL).file}`, site.url).href;
    const report = await measure(page, engines, { model, decode, reps });
    for (const row of report) row.version = row.engine === 'wllama' ? version : 'this';
    printTable(report);
    process.stdout.write(`${JSON.stringify({ model: DEFAULT_MODEL, browser: browser.version(), threads: 1, decode, reps, engines: report }, null, 2)}\n`);
  } finally {
    await browser.close();
    await site.close();
  }
});

/** Loads every engine, then lets them answer in turns. */
async function measure(page, engines, { model, decode, reps }) {
  const loads = {};
  for (const engine of engines) loads[engine] = await page.evaluate(([name, url]) => globalThis.bench.load(name, url), [engine, model]);
  const runs = Object.fromEntries(engines.map((engine) => [engine, []]));
  for (let rep = 0; rep < reps; rep += 1) {
    for (const engine of engines) {
      const prompt = promptFor(rep);
      runs[engine].push(await page.evaluate(([name, text, count]) => globalThis.bench.run(name, text, count), [engine, prompt, decode]));
      say(`bench: ${engine}, run ${rep + 1} of ${reps}`);
    }
  }
  return engines.map((engine) => ({
    engine,
    loadMs: Math.round(loads[engine]),
    promptTokens: runs[engine][0].promptTokens,
    decodedTokens: runs[engine][0].decodedTokens,
    promptTokensPerSecond: median(runs[engine].map((run) => run.promptTokensPerSecond)),
    decodeTokensPerSecond: median(runs[engine].map((run) => run.decodeTokensPerSecond)),
  }));
}

/** A text that differs from its first word on, so that no engine reuses an earlier prompt. */
function promptFor(rep) {
  const words = 'The history of the lighthouse begins long before the first stone tower was raised above the harbour, when fires were lit on hills to guide the ships home through the dark. ';
  return `Chapter ${rep + 1}. ${words.repeat(10)}`.slice(0, PROMPT_CHARACTERS);
}

function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return Math.round(sorted[Math.floor(sorted.length / 2)] * 100) / 100;
}

function printTable(rows) {
  say(`\n${'engine'.padEnd(14)}${'prompt tok/s'.padStart(14)}${'decode tok/s'.padStart(14)}${'load ms'.padStart(10)}`);
  for (const row of rows) say(`${row.engine.padEnd(14)}${row.promptTokensPerSecond.toFixed(1).padStart(14)}${row.decodeTokensPerSecond.toFixed(1).padStart(14)}${String(row.loadMs).padStart(10)}`);
}
