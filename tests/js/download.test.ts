// Downloads from servers that misbehave: the right bytes or one clear error, and nothing broken left in the cache.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { appendFileSync, readFileSync, readdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { test } from 'node:test';
import { FileWindow } from '../../js/window.js';
import { faultOfBeginning } from '../../js/sniff.js';
import type { EdgeErrorCode } from '../../js/errors.js';
import type { PlacedFile } from '../../js/protocol.js';
import { ModelFiles } from '../../js/model-files.js';
import type { Progress } from '../../js/types.js';
import { Store } from '../../js/store.js';
import { CHUNK_BYTES, contextOf, fails, folderOf, headerSays, readAll, spec, storeIn } from './loads.js';
import { modelBytes, sendFile, startServer } from './server.js';

const BODY = modelBytes(300_000);
const SHA256 = createHash('sha256').update(BODY).digest('hex');
headerSays(BODY.length);

test('a_good_server_gives_the_bytes_and_the_cache_gives_them_again', async () => {
  const server = await startServer((request, response) => sendFile(request, response, BODY));
  const first = await readAll(spec(server.url, { sha256: SHA256 }), contextOf('good'));
  assert.deepEqual([Buffer.compare(first.bytes, BODY), first.origin, first.size], [0, 'network', BODY.length]);
  const again = await readAll(spec(server.url, { sha256: SHA256 }), contextOf('good'));
  assert.deepEqual([Buffer.compare(again.bytes, BODY), again.origin], [0, 'cache']);
  assert.equal(server.ranges.length, 1);
  await server.close();
});

for (const cut of [0, 1, 180_000, BODY.length - 1]) {
  test(`a_connection_cut_after_${cut}_bytes_is_continued`, async () => {
    const server = await startServer((request, response, count) => sendFile(request, response, BODY, { cut: count === 0 ? cut : undefined }));
    const { bytes } = await readAll(spec(server.url, { sha256: SHA256 }), contextOf());
    assert.equal(Buffer.compare(bytes, BODY), 0);
    assert.equal(server.ranges.length, 2);
    await server.close();
  });
}

test('a_server_that_ignores_ranges_is_read_again_and_skipped', async () => {
  const server = await startServer((request, response, count) => sendFile(request, response, BODY, { cut: count === 0 ? 123_456 : undefined, ranges: false }));
  const { bytes } = await readAll(spec(server.url), contextOf());
  assert.equal(Buffer.compare(bytes, BODY), 0);
  await server.close();
});

test('a_file_that_changes_between_parts_is_an_integrity_error', async () => {
  const server = await startServer((request, response, count) => sendFile(request, response, BODY, { cut: count === 0 ? 100_000 : undefined, etag: `"v${count}"`, ranges: false }));
  await fails(readAll(spec(server.url), contextOf()), 'integrity', /changed while it was downloaded/);
  await server.close();
});

test('a_later_load_continues_an_unfinished_download', async () => {
  let isBroken = true;
  const server = await startServer((request, response, count) => {
    if (isBroken && count > 0) response.destroy();
    else sendFile(request, response, BODY, { cut: isBroken ? 200_000 : undefined });
  });
  await fails(readAll(spec(server.url, { sha256: SHA256 }), contextOf('resume')), 'network', /./);
  isBroken = false;
  const kept = Math.floor(200_000 / CHUNK_BYTES) * CHUNK_BYTES;
  server.ranges.length = 0;
  const { bytes, origin } = await readAll(spec(server.url, { sha256: SHA256 }), contextOf('resume'));
  assert.deepEqual([Buffer.compare(bytes, BODY), origin, server.ranges], [0, 'network', [`bytes=${kept}-${kept + (8 << 20) - 1}`]]);
  await server.close();
});

test('an_unfinished_download_of_another_version_starts_over', async () => {
  let version = 1;
  const other = modelBytes(250_000).map((byte, i) => (i < 4 ? byte : byte ^ 0xff));
  const server = await startServer((request, response, count) => {
    if (version === 1 && count > 0) response.destroy();
    else sendFile(request, response, version === 1 ? BODY : other, { cut: version === 1 ? 200_000 : undefined, etag: `"v${version}"` });
  });
  await fails(readAll(spec(server.url), contextOf('versions')), 'network', /./);
  version = 2;
  const { bytes } = await readAll(spec(server.url), contextOf('versions'));
  assert.equal(Buffer.compare(bytes, other), 0);
  await server.close();
});

test('a_wrong_hash_is_an_integrity_error_and_is_not_kept', async () => {
  const bad = BODY.slice();
  bad[150_000] = (bad[150_000] ?? 0) ^ 1;
  let isBad = true;
  const server = await startServer((request, response) => sendFile(request, response, isBad ? bad : BODY));
  await fails(readAll(spec(server.url, { sha256: SHA256 }), contextOf('hash')), 'integrity', /SHA-256 [0-9a-f]{64} where/);
  isBad = false;
  const { bytes } = await readAll(spec(server.url, { sha256: SHA256 }), contextOf('hash'));
  assert.equal(Buffer.compare(bytes, BODY), 0);
  await server.close();
});

test('error_statuses_have_their_codes', async () => {
  const cases: [number, EdgeErrorCode, number][] = [[404, 'not-found', 1], [410, 'not-found', 1], [401, 'network', 1], [503, 'network', 4]];
  for (const [status, code, requests] of cases) {
    const server = await startServer((_request, response) => response.writeHead(status).end('no'));
    await fails(readAll(spec(server.url), contextOf()), code, new RegExp(`status ${status}`));
    assert.equal(server.ranges.length, requests, `requests after ${status}`);
    await server.close();
  }
});

test('a_server_that_recovers_is_enough', async () => {
  const server = await startServer((request, response, count) => (count < 2 ? response.writeHead(503).end() : sendFile(request, response, BODY)));
  assert.equal((await readAll(spec(server.url), contextOf())).bytes.length, BODY.length);
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
    await fails(readAll(spec(server.url), contextOf(`wrong-${index}`)), 'malformed-file', pattern);
    isBad = false;
    assert.equal(Buffer.compare((await readAll(spec(server.url), contextOf(`wrong-${index}`))).bytes, BODY), 0);
    await server.close();
  }
});

test('a_content_encoding_makes_the_size_unknown_and_no_good_file_incomplete', async () => {
  const packed = gzipSync(BODY);
  const server = await startServer((_request, response) => response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': packed.length }).end(packed));
  const { bytes, size } = await readAll(spec(server.url), contextOf());
  assert.deepEqual([Buffer.compare(bytes, BODY), size], [0, null]);
  await server.close();
});

test('a_stalled_server_is_given_up_in_time', async () => {
  const server = await startServer((_request, response) => { response.writeHead(200, { 'content-length': BODY.length }).write(BODY.subarray(0, 10)); });
  await fails(readAll(spec(server.url), { ...contextOf(), ...{ stallMs: 50, retries: 1, retryDelayMs: 1 } }), 'network', /sent nothing for 0\.05 s/);
  await server.close();
});

test('an_abort_ends_a_download_with_the_signals_reason', async () => {
  const control = new AbortController();
  const server = await startServer((_request, response) => { response.writeHead(200, { 'content-length': BODY.length }).write(BODY.subarray(0, 2000)); });
  setTimeout(() => control.abort('enough'), 50);
  await assert.rejects(readAll(spec(server.url), contextOf('abort', { signal: control.signal })), (reason) => reason === 'enough');
  await server.close();
});

test('mirrors_are_tried_in_order', async () => {
  const bad = await startServer((_request, response) => response.writeHead(404).end());
  const good = await startServer((request, response) => sendFile(request, response, BODY));
  const place: PlacedFile = { kind: 'url', urls: [bad.url, good.url], name: 'm' };
  assert.equal((await readAll(place, contextOf())).bytes.length, BODY.length);
  await good.close();
  await fails(readAll(place, { ...contextOf(), ...{ retries: 0 } }), 'not-found', /no source answered: .*404.*; .*could not be fetched/);
  await bad.close();
});

test('a_file_of_known_size_comes_in_ranges_a_few_at_a_time_and_in_order', async () => {
  let [underWay, most] = [0, 0];
  const server = await startServer((request, response) => {
    underWay += 1;
    most = Math.max(most, underWay);
    // Some ranges overtake others.
    setTimeout(() => { underWay -= 1; sendFile(request, response, BODY); }, server.ranges.length % 2 === 0 ? 60 : 30);
  });
  const { bytes } = await readAll(spec(server.url), contextOf('ranges', { partBytes: 40_000, parallel: 3 }));
  assert.equal(Buffer.compare(bytes, BODY), 0);
  assert.equal(most, 3);
  const starts = (range: string | null) => Number(/\d+/.exec(range ?? '')?.[0]);
  assert.deepEqual(server.ranges.sort((x, y) => starts(x) - starts(y)), Array.from({ length: 8 }, (_, i) => `bytes=${i * 40_000}-${i === 0 ? 39_999 : Math.min((i + 1) * 40_000, BODY.length) - 1}`));
  await server.close();
});

test('a_mirror_takes_over_where_the_first_server_dies', async () => {
  const dying = await startServer((request, response, count) => { if (count > 1) response.writeHead(500).end(); else sendFile(request, response, BODY, { etag: '"a"' }); });
  const good = await startServer((request, response) => sendFile(request, response, BODY, { etag: '"b"' }));
  const { bytes } = await readAll(spec([dying.url, good.url], { sha256: SHA256 }), contextOf(null, { partBytes: 40_000 }));
  assert.equal(Buffer.compare(bytes, BODY), 0);
  assert.ok(good.ranges.length > 0);
  for (const server of [dying, good]) await server.close();
});

test('a_server_is_asked_again_when_it_says_and_not_for_ever', async () => {
  const started = performance.now();
  const server = await startServer((request, response, count) => (count === 0 ? response.writeHead(429, { 'retry-after': '1' }).end() : sendFile(request, response, BODY)));
  assert.equal((await readAll(spec(server.url), contextOf())).bytes.length, BODY.length);
  assert.ok(performance.now() - started >= 1000);
  await server.close();
  const closed = await startServer((_request, response) => response.writeHead(503, { 'retry-after': '100000' }).end());
  await fails(readAll(spec(closed.url), contextOf()), 'network', /status 503/);
  assert.equal(closed.ranges.length, 1);
  await closed.close();
});

test('a_size_that_is_not_the_expected_one_is_told_before_the_download', async () => {
  const server = await startServer((request, response) => sendFile(request, response, BODY));
  await fails(readAll(spec(server.url, { bytes: 123 }), contextOf()), 'integrity', /has 300000 bytes where 123 were expected/);
  assert.equal(server.ranges.length, 1);
  await server.close();
});

test('stored_bytes_that_changed_are_noticed_and_downloaded_again', async () => {
  const server = await startServer((request, response) => sendFile(request, response, BODY));
  await readAll(spec(server.url), contextOf('rot'));
  const folder = folderOf('rot');
  const data = join(folder, readdirSync(folder).find((name) => name.endsWith('.gguf')) ?? '');
  const stored = readFileSync(data);
  const rots: [string, (copy: Buffer) => Buffer][] = [
    ['the first byte', (copy) => { copy[0] = (copy[0] ?? 0) ^ 1; return copy; }],
    ['a bit in the middle', (copy) => { copy[150_000] = (copy[150_000] ?? 0) ^ 4; return copy; }],
    ['the end cut off', (copy) => copy.subarray(0, 250_000)],
    ['everything', () => Buffer.alloc(0)],
  ];
  for (const [name, rot] of rots) {
    writeFileSync(data, rot(Buffer.from(stored)));
    for (const origin of ['network', 'cache']) {
      const again = await readAll(spec(server.url), contextOf('rot'));
      assert.equal(Buffer.compare(again.bytes, BODY), 0, name);
      assert.equal(again.origin, origin, name);
    }
  }
  await server.close();
});

test('a_journal_that_a_crash_cut_short_is_continued', async () => {
  const server = await startServer((request, response) => sendFile(request, response, BODY));
  await readAll(spec(server.url), contextOf('crash'));
  const folder = folderOf('crash');
  const journal = join(folder, readdirSync(folder).find((name) => name.endsWith('.journal')) ?? '');
  const length = readFileSync(journal).length;
  for (const left of [length - 1, length - 60, Math.floor(length / 2), 100, 0]) {
    truncateSync(journal, left);
    const { bytes } = await readAll(spec(server.url), contextOf('crash'));
    assert.equal(Buffer.compare(bytes, BODY), 0, `${left} of ${length}`);
  }
  appendFileSync(journal, 'what is this');
  assert.equal((await readAll(spec(server.url), contextOf('crash'))).origin, 'cache');
  await server.close();
});

test('two_loads_of_one_file_are_one_download', async () => {
  const server = await startServer((request, response) => setTimeout(() => sendFile(request, response, BODY), 50));
  const both = await Promise.all([1, 2].map(() => readAll(spec(server.url), contextOf('shared'))));
  assert.deepEqual(both.map(({ origin }) => origin).sort(), ['cache', 'network']);
  for (const { bytes } of both) assert.equal(Buffer.compare(bytes, BODY), 0);
  assert.equal(server.ranges.length, 1);
  await server.close();
});

test('a_load_that_waits_for_another_can_be_aborted_and_follows_one_that_failed', async () => {
  const server = await startServer((request, response) => { if (server.ranges.length === 1) response.writeHead(200, { 'content-length': BODY.length }).write(BODY.subarray(0, 1000)); else sendFile(request, response, BODY); });
  const [first, second] = [new AbortController(), new AbortController()];
  const loads = [
    readAll(spec(server.url), contextOf('failing', { signal: first.signal, stallMs: 5000 })),
    readAll(spec(server.url), contextOf('failing', { signal: second.signal })),
    readAll(spec(server.url), contextOf('failing')),
  ];
  setTimeout(() => second.abort('no more'), 30);
  setTimeout(() => first.abort('enough'), 60);
  const outcomes = await Promise.allSettled(loads);
  assert.deepEqual(outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value.bytes.length : outcome.reason)), ['enough', 'no more', BODY.length]);
  await server.close();
});

test('shards_in_any_order_are_counted_together_and_no_two_loads_wait_for_each_other', async () => {
  const server = await startServer((request, response) => setTimeout(() => sendFile(request, response, BODY), 20));
  const urls = ['a', 'b', 'c'].map((name) => `${server.url}?${name}`);
  const load = async (order: number[]) => {
    const steps: Progress[] = [];
    const files = new ModelFiles(order.map((i) => spec(urls[i] ?? '')), contextOf('shards', { model: { name: 'split', files: 3 } }), (step) => steps.push(step));
    await files.open();
    for (const shard of order.keys()) await files.prefix(shard, 100);
    await files.drain();
    return { origin: files.origin, last: steps.at(-1), isHonest: steps.every(({ loaded, total }) => total === null || loaded <= total) };
  };
  const loads = await Promise.all([[0, 1, 2], [2, 1, 0], [1, 2, 0]].map(load));
  assert.deepEqual(loads.map(({ origin }) => origin).sort(), ['cache', 'cache', 'network']);
  for (const { last, isHonest } of loads) assert.deepEqual([last?.loaded, last?.total, isHonest], [3 * BODY.length, 3 * BODY.length, true]);
  assert.equal(server.ranges.length, 3);
  await server.close();
});

test('a_file_that_another_process_writes_is_read_without_storing_it_and_one_that_died_does_not_matter', async () => {
  const server = await startServer((request, response) => sendFile(request, response, BODY));
  await readAll(spec(server.url), contextOf('process'));
  const store = storeIn('process');
  const [file] = readdirSync(folderOf('process')).filter((name) => name.endsWith('.gguf'));
  const lock = join(folderOf('process'), `${file}.lock`);
  // The process that runs this one is alive, and no process has the last number.
  for (const [pid, isStored] of [[process.ppid, false], [2 ** 22 - 1, true]] as const) {
    await store.remove(server.url);
    writeFileSync(lock, String(pid));
    const { bytes } = await readAll(spec(server.url), contextOf('process'));
    assert.equal(Buffer.compare(bytes, BODY), 0);
    assert.equal((await store.find(server.url))?.isComplete ?? false, isStored);
  }
  await server.close();
});

test('what_does_not_fit_is_a_quota_error_with_the_figures_before_the_download', async () => {
  const server = await startServer((request, response) => sendFile(request, response, BODY));
  const { place } = storeIn('full');
  const full = new Store({ ...place, room: async () => ({ freeBytes: 1000, quotaBytes: 5000, usedBytes: 4000 }) }, CHUNK_BYTES);
  await fails(readAll(spec(server.url), contextOf(null, { store: full })), 'quota', /needs 300000 bytes of storage, but 1000 are free \(4000 of 5000 are used\)/);
  assert.equal(server.ranges.length, 1);
  await server.close();
});

test('a_disk_that_fills_up_ends_the_storing_and_not_the_load', async () => {
  const server = await startServer((request, response) => sendFile(request, response, BODY));
  const { place } = storeIn('filling');
  const filling = new Store({
    ...place,
    async edit(name) {
      const editor = await place.edit(name);
      return editor && { ...editor, put: async (start, bytes, line) => { if (start > 100_000) throw new Error('ENOSPC'); return editor.put(start, bytes, line); } };
    },
  }, CHUNK_BYTES);
  const { bytes, fault } = await readAll(spec(server.url), contextOf(null, { store: filling }));
  assert.deepEqual([Buffer.compare(bytes, BODY), fault], [0, 'ENOSPC']);
  assert.deepEqual(await filling.list(), []);
  await server.close();
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
