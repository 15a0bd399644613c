// The static server: ranges, types, headers, and nothing but what it was given.

import assert from 'node:assert/strict';
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { serve } from '../../scripts/lib/serve.mjs';

let folder;
let site;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hanzo-edge-serve-'));
  mkdirSync(join(folder, 'www'));
  writeFileSync(join(folder, 'www', 'index.html'), '<title>hi</title>');
  writeFileSync(join(folder, 'secret.txt'), 'secret');
  writeFileSync(join(folder, 'model.gguf'), '0123456789');
  site = await serve({ '/': join(folder, 'www'), '/models/model.gguf': join(folder, 'model.gguf'), '/list.json': [1, 2] });
});

after(async () => {
  await site.close();
  rmSync(folder, { recursive: true });
});

const get = (path, headers) => fetch(new URL(path, site.url), { headers });

test('a folder answers with its index, its type and the isolation headers', async () => {
  const response = await get('/?query');
  assert.equal(await response.text(), '<title>hi</title>');
  assert.equal(response.headers.get('content-type'), 'text/html; charset=utf-8');
  assert.equal(response.headers.get('cross-origin-opener-policy'), 'same-origin');
  assert.equal(response.headers.get('cross-origin-embedder-policy'), 'require-corp');
});

test('objects are sent as JSON', async () => {
  assert.deepEqual(await (await get('/list.json')).json(), [1, 2]);
});

for (const [range, status, body, content] of [
  ['bytes=2-4', 206, '234', 'bytes 2-4/10'],
  ['bytes=7-', 206, '789', 'bytes 7-9/10'],
  ['bytes=-3', 206, '789', 'bytes 7-9/10'],
  ['bytes=5-99', 206, '56789', 'bytes 5-9/10'],
  ['bytes=10-', 416, '', 'bytes */10'],
  ['lines=1-2', 200, '0123456789', null],
]) {
  test(`the range ${range} answers ${status}`, async () => {
    const response = await get('/models/model.gguf', { range });
    assert.equal(response.status, status);
    assert.equal(await response.text(), body);
    assert.equal(response.headers.get('content-range'), content);
  });
}

test('a second request with the same etag is not sent again', async () => {
  const etag = (await get('/models/model.gguf')).headers.get('etag');
  assert.equal((await get('/models/model.gguf', { 'if-none-match': etag })).status, 304);
});

test('nothing outside the routes is served', async () => {
  for (const path of ['/secret.txt', '/models/', '/models/other', '/%2e%2e/secret.txt', '/..%2fsecret.txt', '/..%5csecret.txt', '/%00', '/%zz']) {
    assert.equal(await rawStatus(path), 404, path);
  }
});

test('a port that is taken gives way to the next one only when asked', async () => {
  await assert.rejects(serve({}, { port: site.port }), /cannot be used: EADDRINUSE/);
  const next = await serve({}, { port: site.port, orNext: true });
  assert.ok(next.port > site.port);
  await next.close();
});

/** The status of a request whose path is sent as it is: fetch would resolve its dots. */
function rawStatus(path) {
  return new Promise((resolve, reject) => {
    const socket = connect(site.port, '127.0.0.1', () => socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`));
    socket.once('data', (data) => { resolve(Number(/HTTP\/1.1 (\d+)/.exec(data)[1])); socket.destroy(); });
    socket.once('error', reject);
  });
}
