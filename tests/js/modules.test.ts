// The WASM modules in Node: which one is chosen, that each computes the same, and what becomes of their threads.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { Worker } from 'node:worker_threads';
import { EdgeError, HanzoEdge } from '@hanzo/edge';
import type { EdgeOptions } from '@hanzo/edge';
import { MODULE_NAMES } from '#dist/modules.js';
import { hasRelaxedSimd, processors, threadsFault } from '#dist/wasm-features.js';

const MODEL = process.env.HANZO_EDGE_MODEL ?? '';
const GRAVITY = [{ role: 'user' as const, content: 'What is gravity?' }];
const isNode20 = process.versions.node.startsWith('20.');
/** Node 20 has threads that it gets wrong: the package must not use them there. */
const needsThreads = { skip: isNode20 ? 'Node 20 gets threads wrong' : false };

/** The workers that the package started, and which of them ended. */
const workers = { started: 0, ended: 0 };
const threads = process.getBuiltinModule('node:worker_threads');
const { Worker: RealWorker } = threads;
before(() => {
  threads.Worker = class extends RealWorker {
    constructor(...args: ConstructorParameters<typeof Worker>) {
      super(...args);
      workers.started += 1;
      this.on('exit', () => { workers.ended += 1; });
    }
  };
});
after(() => { threads.Worker = RealWorker; });

async function load(options: EdgeOptions): Promise<HanzoEdge> {
  return HanzoEdge.init({ model: MODEL, backend: 'cpu', maxContextTokens: 256, ...options });
}

/** A greedy answer, with an engine of its own. */
async function answer(options: EdgeOptions): Promise<{ ids: number[]; module: string; threads: number | undefined; reason: string; selfTest: string[] }> {
  const edge = await load(options);
  const { tokens, stats } = await edge.chat(GRAVITY, { temperature: 0, maxTokens: 24 }).result;
  const { wasmModule, wasmReason, selfTest } = edge.diagnostics;
  assert.equal(edge.diagnostics.threads, stats.threads);
  await edge.close();
  return { ids: [...tokens], module: wasmModule, threads: stats.threads, reason: wasmReason, selfTest: selfTest.filter(({ ok }) => !ok).map(({ kernel }) => kernel) };
}

/** Waits until the workers that were started have ended. */
async function allEnded(): Promise<boolean> {
  for (const end = performance.now() + 5000; performance.now() < end && workers.ended < workers.started;) await new Promise((resolve) => { setTimeout(resolve, 10); });
  return workers.ended === workers.started;
}

for (const relaxed of hasRelaxedSimd() ? [false, true] : [false]) {
  const stem = relaxed ? 'hanzo-edge-relaxed' : 'hanzo-edge';

  test(`${stem}_computes_the_same_on_one_thread_and_on_several`, async () => {
    const wasm = (name: string) => pathToFileURL(`dist/${name}.wasm`);
    const alone = await answer({ wasmUrl: wasm(stem) });
    assert.deepEqual([alone.module, alone.threads, alone.selfTest], [`${stem}.wasm`, 1, []]);
    for (const count of isNode20 ? [] : [1, 2, 3]) {
      const shared = await answer({ wasmUrl: wasm(`${stem}-threads`), threads: count });
      assert.deepEqual([shared.module, shared.threads, shared.selfTest], [`${stem}-threads.wasm`, count, []]);
      assert.deepEqual(shared.ids, alone.ids, `${count} threads`);
    }
    assert.ok(await allEnded(), `${workers.ended} of ${workers.started} threads ended`);
  });
}

test('the_best_module_is_chosen_and_diagnostics_say_why', async () => {
  const simd = hasRelaxedSimd() ? '-relaxed' : '';
  const one = await answer({ threads: 1 });
  assert.deepEqual([one.module, one.threads], [`hanzo-edge${simd}.wasm`, 1]);
  assert.match(one.reason, /one thread: threads: 1 was asked for/);
  const two = await answer({ threads: 2 });
  const byDefault = await answer({});
  if (isNode20) {
    for (const { module, threads, reason } of [two, byDefault]) {
      assert.deepEqual([module, threads], ['hanzo-edge.wasm', 1]);
      assert.match(reason, /no relaxed SIMD here; one thread: atomics are wrong in this V8/);
    }
    await assert.rejects(load({ wasmUrl: pathToFileURL('dist/hanzo-edge-threads.wasm') }), (error) => error instanceof EdgeError && error.code === 'invalid-argument');
  } else {
    assert.deepEqual([two.module, two.threads], [`hanzo-edge${simd}-threads.wasm`, 2]);
    assert.match(two.reason, /threads: 2 was asked for/);
    const expected = Math.min(Math.max(Math.ceil(processors() / 2), Math.min(processors(), 2)), 8);
    assert.equal(byDefault.threads, expected);
    assert.match(byDefault.reason, expected === 1 ? /one processor/ : /logical processors/);
  }
  const bytes = await answer({ wasmBinary: readFileSync('dist/hanzo-edge.wasm') });
  assert.deepEqual([bytes.module, bytes.threads], ['hanzo-edge.wasm', 1]);
  assert.match(bytes.reason, /wasmBinary/);
  const folder = await answer({ wasmUrl: pathToFileURL('dist/').href, threads: 1 });
  assert.equal(folder.module, `hanzo-edge${simd}.wasm`);
});

test('engines_at_once_share_the_threads_of_a_module_and_closing_ends_all', needsThreads, async () => {
  const engines = await Promise.all([load({ threads: 2 }), load({ threads: 3 })]);
  const texts = await Promise.all(engines.map((edge) => edge.chat(GRAVITY, { temperature: 0, maxTokens: 8 }).result));
  assert.equal(texts[0]?.text, texts[1]?.text);
  await engines[0]?.close();
  assert.equal((await engines[1]?.chat(GRAVITY, { temperature: 0, maxTokens: 8 }).result)?.text, texts[0]?.text);
  await engines[1]?.close();
  assert.ok(await allEnded(), `${workers.ended} of ${workers.started} threads ended`);
});

test('a_load_that_fails_leaves_no_thread', needsThreads, async () => {
  await assert.rejects(load({ threads: 2, maxMemoryBytes: 1000 }), (error) => error instanceof EdgeError && error.code === 'out-of-memory');
  assert.ok(await allEnded(), `${workers.ended} of ${workers.started} threads ended`);
});

test('a_program_that_does_not_close_its_engine_ends_all_the_same', needsThreads, () => {
  const script = `const { HanzoEdge } = await import('@hanzo/edge');
    const edge = await HanzoEdge.init({ model: ${JSON.stringify(MODEL)}, backend: 'cpu', threads: 2, maxContextTokens: 64 });
    console.log(edge.diagnostics.threads, (await edge.complete('The capital of France is', { temperature: 0, maxTokens: 1 }).result).text);`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8', timeout: 60_000 });
  assert.equal(stdout, '2  Paris\n', stderr);
  assert.equal(status, 0);
});

test('relaxed_simd_is_taken_where_it_is_right', () => {
  assert.equal(threadsFault() === null, !isNode20);
  const detect = (flags: string[]) => {
    const script = `const { hasRelaxedSimd } = await import(${JSON.stringify(pathToFileURL('dist/wasm-features.js').href)}); console.log(hasRelaxedSimd());`;
    return spawnSync(process.execPath, [...flags, '--input-type=module', '--eval', script], { encoding: 'utf8' }).stdout.trim();
  };
  assert.equal(detect([]), String(!isNode20));
  // Node 20 has it behind a flag, with a wrong dot product.
  if (isNode20) assert.equal(detect(['--experimental-wasm-relaxed-simd']), 'false');
});

test('the_files_of_workers_import_statically_and_one_module_each', () => {
  const importsOf = (file: string) => [...readFileSync(`dist/${file}`, 'utf8').matchAll(/^(?:import|export)[^'"]*['"]\.\/([\w.-]+)['"]/gm)].map((match) => match[1] ?? '');
  const entries = readdirSync('dist').filter((file) => /^(worker|thread)(-relaxed)?(-threads)?\.js$/.test(file));
  assert.equal(entries.length, 6);
  for (const entry of entries) {
    const files = new Set([entry]);
    for (const file of files) for (const imported of importsOf(file)) files.add(imported);
    for (const file of files) assert.doesNotMatch(readFileSync(`dist/${file}`, 'utf8').replace(/\/\/.*$|\/\*[\s\S]*?\*\//gm, ''), /\bimport\(/, `${entry} imports ${file}`);
    const glue = MODULE_NAMES.filter((name) => files.has(`${name}.js`));
    assert.equal(glue.length, 1, `${entry}: ${glue.join(', ')}`);
  }
});
