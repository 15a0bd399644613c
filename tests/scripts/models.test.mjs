// Model downloads by the scripts, against a small HTTP server of the test's own.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { cacheFolder } from '../../scripts/lib/cache.mjs';
import { MODELS, findModel, isCached, modelPath, pullModel } from '../../scripts/lib/models.mjs';

const BODY = Buffer.from('the weights of a very small model, in no format at all');
const cleanups = [];
afterEach(async () => { for (const cleanup of cleanups.splice(0)) await cleanup(); });

/** A server whose `answer(request, response)` is given; resolves with its URL. */
async function server(answer) {
  const http = createServer(answer);
  await new Promise((resolve) => { http.listen(0, '127.0.0.1', resolve); });
  cleanups.push(() => { http.closeAllConnections(); http.close(); });
  return `http://127.0.0.1:${http.address().port}/model.bin`;
}

/** Honours ranges and remembers them in `seen`. */
const ranges = (seen = []) => (request, response) => {
  seen.push(request.headers.range);
  const start = Number(/bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
  if (start > 0) response.writeHead(206, { 'content-range': `bytes ${start}-${BODY.length - 1}/${BODY.length}` });
  response.end(BODY.subarray(start));
};

async function place() {
  const cache = await mkdtemp(join(tmpdir(), 'hanzo-edge-test-'));
  cleanups.push(() => rm(cache, { recursive: true, force: true }));
  await mkdir(join(cache, 'models'));
  return cache;
}

function tiny(...urls) {
  const sha256 = createHash('sha256').update(BODY).digest('hex');
  return { name: 'tiny', bytes: BODY.length, sha256, file: 'tiny.bin', sources: urls.map((url) => ({ url })) };
}

test('a download is verified, counted in bytes and then found in the cache', async () => {
  const cache = await place();
  const model = tiny(await server(ranges()));
  const seen = [];
  const path = await pullModel(model, { cache, onProgress: (progress) => seen.push(progress) });
  assert.deepEqual(await readFile(path), BODY);
  assert.deepEqual(seen.at(-1), { phase: 'verify', loaded: BODY.length, total: BODY.length });
  assert.ok(await isCached(model, cache));
});

test('a download continues where it stopped', async () => {
  const cache = await place();
  const seen = [];
  const model = tiny(await server(ranges(seen)));
  await writeFile(`${modelPath(model, cache)}.part`, BODY.subarray(0, 20));
  assert.deepEqual(await readFile(await pullModel(model, { cache })), BODY);
  assert.deepEqual(seen, ['bytes=20-']);
});

test('a part of another file does not spoil the download', async () => {
  const cache = await place();
  const seen = [];
  const model = tiny(await server(ranges(seen)));
  await writeFile(`${modelPath(model, cache)}.part`, Buffer.alloc(20));
  assert.deepEqual(await readFile(await pullModel(model, { cache })), BODY);
  assert.deepEqual(seen, ['bytes=20-', undefined]);
});

test('the next source is tried after a missing and a wrong file', async () => {
  const cache = await place();
  const missing = await server((_, response) => response.writeHead(404).end());
  const wrong = await server((_, response) => response.end(Buffer.alloc(BODY.length)));
  const notes = [];
  const path = await pullModel(tiny(missing, wrong, await server(ranges())), { cache, note: (line) => notes.push(line) });
  assert.deepEqual(await readFile(path), BODY);
  assert.match(notes[0], /HTTP status 404/);
  assert.match(notes[1], /expected SHA-256/);
});

test('a file that is too long is one clear error and leaves nothing', async () => {
  const cache = await place();
  const model = tiny(await server((_, response) => response.end(Buffer.alloc(BODY.length + 1))));
  await assert.rejects(pullModel(model, { cache }), /could not be downloaded(.|\n)*expected 54 bytes, found 55/);
  assert.equal(await isCached(model, cache), false);
});

test('a damaged file in the cache is replaced', async () => {
  const cache = await place();
  const model = tiny(await server(ranges()));
  await writeFile(modelPath(model, cache), Buffer.alloc(BODY.length));
  assert.deepEqual(await readFile(await pullModel(model, { cache })), BODY);
});

test('an unknown name lists the known ones', () => {
  assert.throws(() => findModel('gpt-5'), /"gpt-5"; known: smollm2-135m-instruct, gemma-3-270m/);
});

test('the table names a hub first and a package after it for every model', () => {
  for (const model of MODELS) {
    assert.match(model.sources[0].url, /^https:/);
    assert.ok(model.sources[1].python.length > 0);
    assert.match(model.sha256, /^[0-9a-f]{64}$/);
  }
});

test('the cache folder follows the environment and the platform', () => {
  assert.equal(cacheFolder({ HANZO_EDGE_CACHE: 'here' }, 'linux', 'home'), 'here');
  assert.equal(cacheFolder({ XDG_CACHE_HOME: 'xdg' }, 'linux', 'home'), join('xdg', 'hanzo-edge'));
  assert.equal(cacheFolder({}, 'linux', 'home'), join('home', '.cache', 'hanzo-edge'));
  assert.equal(cacheFolder({}, 'darwin', 'home'), join('home', 'Library', 'Caches', 'hanzo-edge'));
  assert.equal(cacheFolder({ LOCALAPPDATA: 'local' }, 'win32', 'home'), join('local', 'hanzo-edge'));
});
