// What is told of a model before it is loaded, and the models that are stored, in Node with the real default model.

import assert from 'node:assert/strict';
import { createReadStream, mkdtempSync, openAsBlob, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { EdgeError, HanzoEdge } from '@hanzo/edge';
import type { EdgeErrorCode, EdgeOptions, Progress } from '@hanzo/edge';
import { sendFile, startServer } from './server.js';
import type { TestServer } from './server.js';
import { tinyModel } from './tiny.js';

const MODEL = process.env.HANZO_EDGE_MODEL ?? '';
const { size } = statSync(MODEL);
const folder = mkdtempSync(join(tmpdir(), 'hanzo-edge-test-'));
process.env.HANZO_EDGE_CACHE = folder;
after(() => rmSync(folder, { recursive: true, force: true }));

/** Serves the model in ranges and counts what it sends. */
async function modelServer(): Promise<TestServer & { sentBytes: number }> {
  const counts = { sentBytes: 0 };
  const server = await startServer((request, response) => {
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
    const [start, last] = range ? [Number(range[1]), Math.min(Number(range[2]), size - 1)] : [0, size - 1];
    response.writeHead(range ? 206 : 200, { 'content-length': last - start + 1, etag: '"1"', ...(range ? { 'content-range': `bytes ${start}-${last}/${size}` } : {}) });
    createReadStream(MODEL, { start, end: last }).on('data', (chunk) => { counts.sentBytes += chunk.length; }).pipe(response);
  });
  return Object.defineProperty(server, 'sentBytes', { get: () => counts.sentBytes }) as TestServer & { sentBytes: number };
}

async function fails(work: Promise<unknown>, code: EdgeErrorCode, pattern: RegExp): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof EdgeError, String(error));
    assert.deepEqual([error.code, pattern.test(error.message)], [code, true], error.message);
    return true;
  });
}

test('a_plan_is_what_the_memory_then_is', async () => {
  for (const options of [{ maxContextTokens: 512 }, { maxContextTokens: 300, kvCache: 'f32' }] satisfies EdgeOptions[]) {
    const given: EdgeOptions = { model: MODEL, backend: 'cpu', ...options };
    const { memoryBytes, contextTokens, fits, backend, quantization, downloadBytes } = await HanzoEdge.plan(given);
    assert.deepEqual([contextTokens, fits, backend, quantization, downloadBytes], [options.maxContextTokens, true, 'cpu', 'q4_1', 0]);
    const edge = await HanzoEdge.init(given);
    await edge.complete('word '.repeat(280), { temperature: 0, maxTokens: 1 }).result;
    const { weightsBytes, kvBytes, scratchBytes } = await edge.memory();
    await edge.close();
    const parts = [[memoryBytes.weights, weightsBytes], [memoryBytes.kv, kvBytes], [memoryBytes.scratch, scratchBytes], [memoryBytes.total, weightsBytes + kvBytes + scratchBytes]] as const;
    console.log(`# planned and measured bytes of weights, cache, scratch, all: ${JSON.stringify(parts)}`);
    for (const [planned, measured] of parts) assert.ok(Math.abs(planned - measured) <= 0.1 * measured, `${planned} were planned, ${measured} are held`);
  }
});

test('bytes_and_blobs_are_planned_like_files_and_a_stream_cannot_be', async () => {
  const bytes = readFileSync(MODEL);
  for (const model of [bytes, await openAsBlob(MODEL)]) {
    const planned = await HanzoEdge.plan({ model, backend: 'cpu' });
    assert.deepEqual([planned.downloadBytes, planned.fits], [0, true]);
  }
  await fails(HanzoEdge.plan({ model: new Blob([bytes.subarray(0, 100)]).stream() }), 'invalid-argument', /stream/);
});

test('a_model_is_planned_downloaded_listed_used_offline_and_deleted', async () => {
  const server = await modelServer();
  const options: EdgeOptions = { model: server.url, backend: 'cpu', maxContextTokens: 256 };
  assert.equal(await HanzoEdge.availability(options), 'downloadable');
  const planned = await HanzoEdge.plan(options);
  assert.deepEqual([planned.downloadBytes, planned.fits], [size, true]);
  assert.ok(server.sentBytes < 12e6, `${server.sentBytes} bytes were read to plan twice`);
  const seen: Progress[] = [];
  const download = HanzoEdge.models.download(server.url, { onProgress: (progress) => seen.push(progress) });
  await new Promise((resolve) => { setTimeout(resolve, 100); });
  assert.equal(await HanzoEdge.availability(options), 'downloading');
  await fails(HanzoEdge.models.delete(server.url), 'invalid-argument', /is being downloaded/);
  await download;
  assert.deepEqual([seen.at(-1)?.phase, seen.at(-1)?.loaded], ['download', size]);
  const [model, ...others] = await HanzoEdge.models.list();
  assert.deepEqual([model?.name, model?.url, model?.bytes, model?.totalBytes, model?.complete, model?.where, others.length], [server.url, server.url, size, size, true, 'disk', 0]);
  assert.ok(Date.now() - (model?.lastUsed.getTime() ?? 0) < 60_000);
  await server.close();
  assert.equal(await HanzoEdge.availability(options), 'available');
  const edge = await HanzoEdge.init(options);
  assert.deepEqual(edge.diagnostics.cache, { kind: 'disk', hit: true });
  assert.equal((await edge.complete('The capital of France is', { temperature: 0, maxTokens: 1 }).result).text, ' Paris');
  await edge.close();
  await HanzoEdge.models.delete(server.url);
  await HanzoEdge.models.delete(server.url);
  assert.deepEqual(await HanzoEdge.models.list(), []);
  assert.equal(await HanzoEdge.availability(options), 'unavailable');
});

test('what_is_stored_stays_as_it_was_and_deleting_it_brings_the_servers_newest', async () => {
  const bodies = [tinyModel(1), tinyModel(2)];
  let version = 0;
  const server = await startServer((request, response) => sendFile(request, response, bodies[version] ?? new Uint8Array(), { etag: `"v${version}"` }));
  const answer = async (options: EdgeOptions) => {
    const edge = await HanzoEdge.init({ ...options, backend: 'cpu' });
    const { text } = await edge.complete('hello', { temperature: 0, maxTokens: 16 }).result;
    await edge.close();
    return text;
  };
  const [first, second] = [await answer({ model: bodies[0] ?? '' }), await answer({ model: bodies[1] ?? '' })];
  assert.notEqual(first, second);
  assert.equal(await answer({ model: server.url }), first);
  version = 1;
  const asked = server.ranges.length;
  assert.equal(await answer({ model: server.url }), first);
  assert.equal(server.ranges.length, asked, 'the server is not asked');
  await HanzoEdge.models.delete(server.url);
  await HanzoEdge.models.download(server.url);
  assert.equal(await answer({ model: server.url }), second);
  await HanzoEdge.models.delete(server.url);
  await server.close();
});

test('what_does_not_fit_for_the_users_limit_has_the_code_that_a_load_fails_with', async () => {
  const options: EdgeOptions = { model: MODEL, backend: 'cpu', maxMemoryBytes: 1e6 };
  const planned = await HanzoEdge.plan(options);
  assert.deepEqual([planned.fits, planned.code], [false, 'out-of-memory']);
  assert.match(planned.reason, /maxMemoryBytes: expected at least \d+/);
  assert.ok(planned.memoryBytes.total > 80e6);
  assert.equal(await HanzoEdge.availability(options), 'unavailable');
  await fails(HanzoEdge.init(options), 'out-of-memory', /maxMemoryBytes/);
});

test('wrong_questions_are_errors_and_missing_models_are_unavailable', async () => {
  const server = await startServer((_request, response) => response.writeHead(404).end());
  await fails(HanzoEdge.plan({ model: server.url }), 'not-found', /404/);
  assert.equal(await HanzoEdge.availability({ model: server.url }), 'unavailable');
  assert.equal(await HanzoEdge.availability({ model: 'no-such-model' }), 'unavailable');
  await fails(HanzoEdge.availability({ model: MODEL, threads: -1 }), 'invalid-argument', /threads/);
  await fails(HanzoEdge.availability({ model: MODEL, maxContextTokens: 1e6 }), 'invalid-argument', /maxContextTokens/);
  await fails(HanzoEdge.models.download(server.url), 'not-found', /404/);
  await fails(HanzoEdge.models.download(server.url, { backend: 'cpu' } as object), 'invalid-argument', /unknown option backend/);
  await fails(HanzoEdge.models.download(server.url, { cache: 'none' }), 'not-found', /404/);
  await assert.rejects(HanzoEdge.plan({ model: MODEL, signal: AbortSignal.abort('enough') }), (reason) => reason === 'enough');
  await server.close();
});
