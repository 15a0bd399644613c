// What guessing ahead (`speculative`) gains: answers of the default model with and without it, in turns, on the CPU in Node.
// Tasks that repeat their prompt and ordinary conversations, greedy and drawn. Prints a table; `npm run build` comes before.
// `node benches/guesses.mjs [ROUNDS]`. One thread, whose time the processor counts. Not part of the tests.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DEFAULT_MODEL, findModel, modelPath } from '../scripts/lib/models.mjs';
import { Stop, main } from '../scripts/lib/shell.mjs';
import { DIST } from '../scripts/lib/wasm.mjs';

const STORY = `The old lighthouse keeper climbed the stairs every evening at six. He carried a lamp, a loaf of bread and a small red book in which he wrote the names of the ships that passed. In forty years he had written down more than nine thousand names. On the last page there was room for one more, and he wondered which ship it would be.`;
const CODE = `function total(items) {
  let sum = 0;
  for (const item of items) {
    if (item.price > 0 && item.count > 0) {
      sum += item.price * item.count;
    }
  }
  return sum;
}`;

/** Tasks: the first kind repeats its prompt, the second does not. */
const TASKS = [
  ['repeats', 'quote a text', `Repeat the following text word for word.\n\n${STORY}`],
  ['repeats', 'correct a text', `Correct the spelling of this text and change nothing else.\n\n${STORY.replace('lighthouse', 'lighthose').replace('written', 'writen').replace('wondered', 'wonderd')}`],
  ['repeats', 'edit code', `Rename the variable sum to result in this code. Answer with the whole code.\n\n\`\`\`js\n${CODE}\n\`\`\``],
  ['repeats', 'summarize', `Summarize this text in three sentences.\n\n${STORY} ${STORY.replace('last page', 'first page').replace('forty', 'fifty')}`],
  ['chat', 'explain', 'What is gravity?'],
  ['chat', 'story', 'Write a short story about a fox who learns to sail.'],
  ['chat', 'advice', 'How do I prepare for a job interview?'],
  ['chat', 'list', 'Name ten things to see in Lisbon.'],
  ['chat', 'poem', 'Write a poem about rain in the mountains.'],
];
const MAX_TOKENS = 96;
const WAYS = [['greedy', { temperature: 0 }], ['drawn', { temperature: 0.8, seed: 7 }]];

main(async () => {
  if (!existsSync(join(DIST, 'index.js'))) throw new Stop('dist/ is not built: run `npm run build`');
  const rounds = Number(process.argv[2] ?? 3);
  const { HanzoEdge } = await import('#dist/index.js');
  const edge = await HanzoEdge.init({ model: modelPath(findModel(DEFAULT_MODEL)), backend: 'cpu', threads: 1, maxContextTokens: 1024 });
  process.stdout.write(`${edge.diagnostics.wasmModule}, one thread, median of ${rounds} rounds\n`);
  const rows = [];
  for (const [kind, name, prompt] of TASKS) for (const [way, sampling] of WAYS) rows.push({ kind, name, way, ...(await measured(edge, prompt, sampling, rounds)) });
  await edge.close();
  for (const row of [...rows, ...sums(rows)]) process.stdout.write(`${line(row)}\n`);
});

/** Decodes the same answer with guesses and without, in turns, so that a busy machine slows both. */
async function measured(edge, prompt, sampling, rounds) {
  const msPerToken = { true: [], false: [] };
  let accepted = 0;
  let drafted = 0;
  let tokens = 0;
  const texts = new Set();
  for (let round = 0; round < 2 * rounds; round += 1) {
    const speculative = (round + (round >> 1)) % 2 === 0;
    const { text, stats, usage, decodeMs } = await timed(edge.chat([{ role: 'user', content: prompt }], { ...sampling, speculative, maxTokens: MAX_TOKENS, repeatPenalty: 1 }));
    texts.add(text);
    tokens = usage.completionTokens;
    msPerToken[speculative].push(decodeMs / Math.max(1, tokens - 1));
    if (speculative) ({ draftedTokens: drafted, acceptedTokens: accepted } = stats);
  }
  if (texts.size !== 1) throw new Stop(`the answers differ: ${[...texts].join('\n---\n')}`);
  return { tokens, drafted, accepted, without: median(msPerToken.false), with: median(msPerToken.true) };
}

/** An answer, and the processor time from its first piece to its end: what else the machine does counts less. */
async function timed(stream) {
  const spent = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1000; };
  let first = null;
  for await (const _piece of stream) first ??= spent();
  return { ...(await stream.result), decodeMs: spent() - first };
}

/** A row for each kind and way: what all its answers take together. */
function sums(rows) {
  const groups = new Map();
  for (const row of rows) {
    const key = `${row.kind} ${row.way}`;
    const sum = groups.get(key) ?? { kind: row.kind, way: row.way, name: 'all', tokens: 0, drafted: 0, accepted: 0, without: 0, with: 0 };
    for (const name of ['drafted', 'accepted', 'tokens']) sum[name] += row[name];
    for (const name of ['without', 'with']) sum[name] += row[name] * row.tokens;
    groups.set(key, sum);
  }
  return [...groups.values()].map((sum) => ({ ...sum, without: sum.without / sum.tokens, with: sum.with / sum.tokens }));
}

function line({ kind, name, way, tokens, drafted, accepted, without, with: guessed }) {
  const rate = (ms) => (1000 / ms).toFixed(1);
  return `| ${kind} | ${name} | ${way} | ${tokens} | ${rate(without)} | ${rate(guessed)} | ${(without / guessed).toFixed(2)} | ${accepted} of ${drafted} |`;
}

function median(values) {
  return [...values].sort((a, b) => a - b)[values.length >> 1];
}
