// Downloads from servers that misbehave: the right bytes or one clear error, and nothing broken left in the cache.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { after, test } from 'node:test';
import { diskStore } from '../../js/cache-disk.js';
import { faultOfBeginning } from '../../js/download.js';
import { EdgeError } from '../../js/errors.js';
import type { EdgeErrorCode } from '../../js/errors.js';
import { FileWindow, openFile } from '../../js/files.js';
import type { FileContext, PlacedFile } from '../../js/files.js';
import { modelBytes, sendFile, startServer } from './server.js';

const BODY = modelBytes(300_000);
const SHA256 = createHash('sha256').update(BODY).digest('hex');
const folder = mkdtempSync(join(tmpdir(), 'hanzo-edge-test-'));
after(() => rmSync(folder, { recursive: true, force: true }));

function context(cache: string | null = null, signal = new AbortController().signal): FileContext {
  const quick = { retryDelayMs: 1, stallMs: 400, retries: 3 };
  return {
    ...quick, signal, fetch, headers: [], store: cache === null ? null : diskStore(join(folder, cache)),
    makeHasher: () => {
      const hash = createHash('sha256');
      return { update: (bytes) => { hash.update(bytes); }, finish: () => hash.digest('hex') };
    },
    openStream: () => new ReadableStream(),
  };
}

function spec(url: string, more: Partial<Extract<PlacedFile, { kind: 'url' }>> = {}): PlacedFile {
  return { kind: 'url', urls: [url], name: 'model.gguf', ...more };
}

/** Reads a file as a load does: its beginning first, then everything. */
async function readAll(place: PlacedFile, use: FileContext): Promise<{ bytes: Uint8Array; origin: string; size: number | null }> {
  const file = await openFile(place, use);
  const chunks: Uint8Array[] = [];
  const window = new FileWindow({ ...bound(file), read: async () => { const chunk = await file.read(); if (chunk) chunks.push(chunk.slice()); return chunk; } }, () => {});
  try {
    await window.prefix(1000);
    await window.drain();
  } catch (error) {
    await file.close(error instanceof EdgeError && error.code === 'malformed-file' ? 'discard' : 'keep');
    throw error;
  }
  return { bytes: Buffer.concat(chunks), origin: file.origin, size: file.size };
}

function bound(file: Awaited<ReturnType<typeof openFile>>): Awaited<ReturnType<typeof openFile>> {
  return { name: file.name, size: file.size, origin: file.origin, had: file.had, read: () => file.read(), close: (outcome) => file.close(outcome) };
}

async function fails(work: Promise<unknown>, code: EdgeErrorCode, pattern: RegExp): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof EdgeError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, pattern);
    return true;
  });
}

test('a_good_server_gives_the_bytes_and_the_cache_gives_them_again', async () => {
  const server = await startServer((request, response) => sendFile(request, response, BODY));
  const first = await readAll(spec(server.url, { sha256: SHA256 }), context('good'));
  assert.deepEqual([Buffer.compare(first.bytes, BODY), first.origin, first.size], [0, 'network', BODY.length]);
  const again = await readAll(spec(server.url, { sha256: SHA256 }), context('good'));
  assert.deepEqual([Buffer.compare(again.bytes, BODY), again.origin], [0, 'cache']);
  assert.equal(server.ranges.length, 1);
  await server.close();
});

for (const cut of [0, 1, 180_000, BODY.length - 1]) {
  test(`a_connection_cut_after_${cut}_bytes_is_continued`, async () => {
    const server = await startServer((request, response, count) => sendFile(request, response, BODY, { cut: count === 0 ? cut : undefined }));
    const { bytes } = await readAll(spec(server.url, { sha256: SHA256 }), context());
    assert.equal(Buffer.compare(bytes, BODY), 0);
    assert.equal(server.ranges.length, 2);
    await server.close();
  });
}

test('a_server_that_ignores_ranges_is_read_again_and_skipped', async () => {
  const server = await startServer((request, response, count) => sendFile(request, response, BODY, { cut: count === 0 ? 123_456 : undefined, ranges: false }));
  const { bytes } = await readAll(spec(server.url), context());
  assert.equal(Buffer.compare(bytes, BODY), 0);
  await server.close();
});

test('a_file_that_changes_between_parts_is_an_integrity_error', async () => {
  const server = await startServer((request, response, count) => sendFile(request, response, BODY, { cut: count === 0 ? 100_000 : undefined, etag: `"v${count}"`, ranges: false }));
  await fails(readAll(spec(server.url), context()), 'integrity', /changed while it was downloaded/);
  await server.close();
});

test('a_later_load_continues_an_unfinished_download', async () => {
  let isBroken = true;
  const server = await startServer((request, response) => {
    if (isBroken && request.headers.range) response.destroy();
    else sendFile(request, response, BODY, { cut: isBroken ? 200_000 : undefined });
  });
  await fails(readAll(spec(server.url, { sha256: SHA256 }), context('resume')), 'network', /./);
  isBroken = false;
  server.ranges.length = 0;
  const { bytes, origin } = await readAll(spec(server.url, { sha256: SHA256 }), context('resume'));
  assert.deepEqual([Buffer.compare(bytes, BODY), origin, server.ranges], [0, 'network', ['bytes=200000-']]);
  await server.close();
});

test('an_unfinished_download_of_another_version_starts_over', async () => {
  let version = 1;
  const other = modelBytes(250_000).map((byte, i) => (i < 4 ? byte : byte ^ 0xff));
  const server = await startServer((request, response) => {
    if (version === 1 && request.headers.range) response.destroy();
    else sendFile(request, response, version === 1 ? BODY : other, { cut: version === 1 ? 200_000 : undefined, etag: `"v${version}"` });
  });
  await fails(readAll(spec(server.url), context('versions')), 'network', /./);
  version = 2;
  const { bytes } = await readAll(spec(server.url), context('versions'));
  assert.equal(Buffer.compare(bytes, other), 0);
  await server.close();
});

test('a_wrong_hash_is_an_integrity_error_and_is_not_kept', async () => {
  const bad = BODY.slice();
  bad[150_000] = (bad[150_000] ?? 0) ^ 1;
  let isBad = true;
  const server = await startServer((request, response) => sendFile(request, response, isBad ? bad : BODY));
  await fails(readAll(spec(server.url, { sha256: SHA256 }), context('hash')), 'integrity', /SHA-256 [0-9a-f]{64} where/);
  isBad = false;
  const { bytes } = await readAll(spec(server.url, { sha256: SHA256 }), context('hash'));
  assert.equal(Buffer.compare(bytes, BODY), 0);
  await server.close();
});

test('error_statuses_have_their_codes', async () => {
  const cases: [number, EdgeErrorCode, number][] = [[404, 'not-found', 1], [410, 'not-found', 1], [401, 'network', 1], [503, 'network', 4]];
  for (const [status, code, requests] of cases) {
    const server = await startServer((_request, response) => response.writeHead(status).end('no'));
    await fails(readAll(spec(server.url), context()), code, new RegExp(`status ${status}`));
    assert.equal(server.ranges.length, requests, `requests after ${status}`);
    await server.close();
  }
});

test('a_server_that_recovers_is_enough', async () => {
  const server = await startServer((request, response, count) => (count < 2 ? response.writeHead(503).end() : sendFile(request, response, BODY)));
  assert.equal((await readAll(spec(server.url), context())).bytes.length, BODY.length);
  await server.close();
});

test('what_is_no_model_is_named_and_not_cached', async () => {
  const cases: [string, string | Uint8Array, RegExp][] = [
    ['text/html', '<!DOCTYPE html><html></html>', /web page/],
    ['application/octet-stream', '\n <!doctype html><title>x</title>', /web page/],
    ['application/octet-stream', 'version https://git-lfs.github.com/spec/v1\noid sha256:0\n', /Git LFS pointer/],
    ['application/octet-stream', '{"error":"Unauthorized"}        ', /JSON/],
    ['application/octet-stream', gzipSync(BODY), /gzip/],
    ['application/octet-stream', '', /empty/],
  ];
  for (const [index, [type, body, pattern]] of cases.entries()) {
    let isBad = true;
    const server = await startServer((request, response) => {
      if (isBad) response.writeHead(200, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body);
      else sendFile(request, response, BODY);
    });
    await fails(readAll(spec(server.url), context(`wrong-${index}`)), 'malformed-file', pattern);
    isBad = false;
    assert.equal(Buffer.compare((await readAll(spec(server.url), context(`wrong-${index}`))).bytes, BODY), 0);
    await server.close();
  }
});

test('a_content_encoding_makes_the_size_unknown_and_no_good_file_incomplete', async () => {
  const packed = gzipSync(BODY);
  const server = await startServer((_request, response) => response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': packed.length }).end(packed));
  const { bytes, size } = await readAll(spec(server.url), context());
  assert.deepEqual([Buffer.compare(bytes, BODY), size], [0, null]);
  await server.close();
});

test('a_stalled_server_is_given_up_in_time', async () => {
  const server = await startServer((_request, response) => { response.writeHead(200, { 'content-length': BODY.length }).write(BODY.subarray(0, 10)); });
  await fails(readAll(spec(server.url), { ...context(), ...{ stallMs: 50, retries: 1, retryDelayMs: 1 } }), 'network', /sent nothing for 0\.05 s/);
  await server.close();
});

test('an_abort_ends_a_download_with_the_signals_reason', async () => {
  const control = new AbortController();
  const server = await startServer((_request, response) => { response.writeHead(200, { 'content-length': BODY.length }).write(BODY.subarray(0, 2000)); });
  setTimeout(() => control.abort('enough'), 50);
  await assert.rejects(readAll(spec(server.url), context('abort', control.signal)), (reason) => reason === 'enough');
  await server.close();
});

test('mirrors_are_tried_in_order', async () => {
  const bad = await startServer((_request, response) => response.writeHead(404).end());
  const good = await startServer((request, response) => sendFile(request, response, BODY));
  const place: PlacedFile = { kind: 'url', urls: [bad.url, good.url], name: 'm' };
  assert.equal((await readAll(place, context())).bytes.length, BODY.length);
  await good.close();
  await fails(readAll(place, { ...context(), ...{ retries: 0 } }), 'not-found', /no source answered: .*404.*; .*could not be fetched/);
  await bad.close();
});

test('a_windows_ranges_are_cut_right_at_every_chunk_size', async () => {
  for (const chunk of [1, 7, 64, 1000, BODY.length]) {
    const body = BODY.subarray(0, 5000);
    let at = 0;
    const window = new FileWindow({
      name: 'x', size: null, origin: 'caller', had: 0,
      read: async () => { const part = body.subarray(at, at + chunk); at += chunk; return part.length > 0 ? part : null; },
      close: async () => {},
    }, () => {});
    assert.deepEqual(await window.prefix(100), body.subarray(0, 100));
    assert.deepEqual(await window.prefix(333), body.subarray(0, 333));
    assert.deepEqual(await window.range(200, 50, 1 << 20), body.subarray(200, 250));
    assert.deepEqual(await window.range(20, 50, 1 << 20), body.subarray(20, 70));
    assert.deepEqual(await window.range(300, 1500, 0), body.subarray(300, 1800));
    assert.deepEqual(await window.range(1800, 0, 0), new Uint8Array());
    assert.deepEqual(await window.range(4000, 1000, 0), body.subarray(4000));
    await fails(window.range(4990, 11, 0), 'malformed-file', /ends at byte 5000/);
  }
});

test('ordinary_beginnings_are_no_faults', () => {
  assert.equal(faultOfBeginning(BODY.subarray(0, 64), 'x'), null);
  assert.equal(faultOfBeginning(new Uint8Array(64), 'x'), null);
});
