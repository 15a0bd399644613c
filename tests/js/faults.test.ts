// Many downloads from servers with random faults: each gives the right bytes or one clear error, a good server afterwards is
// always enough, and what is then stored is right. A failure names its seed.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { EDGE_ERROR_CODES, EdgeError } from '../../js/errors.js';
import type { Progress } from '../../js/types.js';
import { answerWith, drawFault, randomFrom } from './faulty.js';
import { contextOf, headerSays, readAll, spec } from './loads.js';
import type { ReadModel } from './loads.js';
import { modelBytes, startServer } from './server.js';

const RUNS = Number(process.env.HANZO_EDGE_FAULT_RUNS ?? 200);
const FIRST_SEED = Number(process.env.HANZO_EDGE_FAULT_SEED ?? 1);
const BODY = modelBytes(150_000);
const SHA256 = createHash('sha256').update(BODY).digest('hex');
headerSays(BODY.length);

/** The errors that a fault of a server may come to. */
const CLEAR = new Set(['network', 'integrity', 'not-found', 'malformed-file']);

function assertHonest(progress: Progress[], isDone: boolean): void {
  const steps = progress.filter(({ phase }) => phase === 'download' || phase === 'upload');
  for (const [i, { loaded, total, etaMs, bytesPerSecond }] of steps.entries()) {
    assert.ok(loaded >= 0 && (total === null || loaded <= total), `${loaded} of ${total}`);
    assert.ok(i === 0 || steps[i - 1]?.phase !== steps[i]?.phase || loaded >= (steps[i - 1]?.loaded ?? 0), 'progress never falls');
    assert.ok((etaMs ?? 0) >= 0 && (bytesPerSecond ?? 0) >= 0);
  }
  if (isDone) assert.equal(steps.filter(({ loaded, total }) => loaded === total).length, 1, 'the end is told once');
}

async function outcomeOf(read: Promise<ReadModel>): Promise<'right' | 'aborted' | EdgeError> {
  try {
    const { bytes, progress, fault } = await read;
    assert.equal(Buffer.compare(bytes, BODY), 0, 'wrong bytes were given');
    assert.equal(fault, null);
    assertHonest(progress, true);
    return 'right';
  } catch (error) {
    if (error === 'enough') return 'aborted';
    if (!(error instanceof EdgeError)) throw error;
    assert.ok(CLEAR.has(error.code) && EDGE_ERROR_CODES.includes(error.code), `${error.code}: ${error.message}`);
    assert.ok(error.message.length > 20, error.message);
    return error;
  }
}

/** One run: a faulty server, perhaps another attempt, a good server, no server. Answers what the first attempt came to. */
async function run(seed: number): Promise<string> {
  const random = randomFrom(seed);
  const knowsHash = random() < 0.7;
  const calm = 0.2 + 0.7 * random();
  let isGood = false;
  const server = await startServer((request, response) => {
    answerWith(isGood ? { kind: 'none' } : drawFault(random, { calm, knowsHash }), BODY, request, response);
  });
  const control = new AbortController();
  if (random() < 0.2) setTimeout(() => control.abort('enough'), 20 * random());
  const known = { ...(knowsHash ? { sha256: SHA256 } : {}), ...(random() < 0.5 ? { bytes: BODY.length } : {}) };
  const transfer = { stallMs: 40, partBytes: random() < 0.8 ? 20_000 + Math.floor(30_000 * random()) : 1 << 20, parallel: 1 + Math.floor(4 * random()) };
  const cache = `run-${seed}`;
  try {
    const place = spec(server.url, known);
    const first = await outcomeOf(readAll(place, contextOf(cache, { ...transfer, signal: control.signal })));
    if (random() < 0.3) await outcomeOf(readAll(place, contextOf(cache, transfer)));
    isGood = true;
    const second = await outcomeOf(readAll(place, contextOf(cache, { ...transfer, stallMs: 4000 })));
    assert.equal(second, 'right', `a good server was not enough: ${second instanceof Error ? second.message : second}`);
    await server.close();
    const third = await readAll(place, contextOf(cache, transfer));
    assert.equal(Buffer.compare(third.bytes, BODY), 0, 'the cache gives wrong bytes');
    assert.equal(third.origin, 'cache');
    assertHonest(third.progress, true);
    return first instanceof EdgeError ? first.code : first;
  } finally {
    await server.close();
  }
}

test(`${RUNS}_downloads_with_random_faults_break_no_cache`, async () => {
  const outcomes = new Map<string, number>();
  const one = async (seed: number) => {
    const outcome = await run(seed).catch((error: unknown) => {
      throw new Error(`seed ${seed} (HANZO_EDGE_FAULT_SEED=${seed} HANZO_EDGE_FAULT_RUNS=1): ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    });
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  };
  // Most of a run is waiting.
  const seeds = Array.from({ length: RUNS }, (_, i) => FIRST_SEED + i);
  while (seeds.length > 0) await Promise.all(seeds.splice(0, 8).map(one));
  console.log(`# first attempts: ${[...outcomes].map(([outcome, count]) => `${outcome} ${count}`).join(', ')}`);
  if (RUNS < 100) return;
  assert.ok((outcomes.get('right') ?? 0) > RUNS / 10 && outcomes.size > 2, 'the faults are neither too many nor too few');
});
