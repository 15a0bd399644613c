// Finding a model's files on the hub, with a fetch that answers like it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HanzoEdge } from '@hanzo/edge';
import { EdgeError } from '../../js/errors.js';
import { memoryPlace } from '../../js/cache-memory.js';
import { resolveHub } from '../../js/hub.js';
import { shardUrls } from '../../js/model-names.js';
import type { HubModel } from '../../js/model-names.js';
import { placeModel } from '../../js/placing.js';
import type { PlacingContext } from '../../js/placing.js';
import { Store } from '../../js/store.js';
import { tinyModel } from './tiny.js';

function hub(paths: string[], status = 200): { fetch: typeof fetch; urls: string[]; headers: [string, string][]; signal: AbortSignal } {
  const urls: string[] = [];
  const rows = paths.map((path, i) => ({ type: 'file', path, size: 1, lfs: { oid: String(i).repeat(64), size: 100 + i } }));
  return {
    urls, headers: [], signal: new AbortController().signal,
    fetch: (async (url: string) => {
      urls.push(url);
      return new Response(JSON.stringify(rows), { status });
    }) as typeof fetch,
  };
}

const FILES = ['README.md', 'm-Q8_0.gguf', 'm-Q4_K_M.gguf', 'big/m-F16-00001-of-00002.gguf', 'big/m-F16-00002-of-00002.gguf', 'mmproj-F16.gguf'];
const model = (quant: string | null) => ({ owner: 'o', repo: 'r', quant });

test('the_named_or_else_the_preferred_quantization_is_taken_with_its_hash', async () => {
  const site = hub(FILES);
  assert.deepEqual(await resolveHub(model(null), site), [
    { kind: 'url', urls: ['https://huggingface.co/o/r/resolve/main/m-Q4_K_M.gguf'], name: 'm-Q4_K_M.gguf', sha256: '2'.repeat(64), bytes: 102 },
  ]);
  assert.deepEqual(site.urls, ['https://huggingface.co/api/models/o/r/tree/main?recursive=true']);
  const [q8] = await resolveHub(model('q8_0'), hub(FILES));
  assert.equal(q8?.name, 'm-Q8_0.gguf');
});

test('all_shards_of_a_split_model_are_found', async () => {
  const shards = await resolveHub(model('F16'), hub(FILES));
  assert.deepEqual(shards.map(({ name }) => name), ['big/m-F16-00001-of-00002.gguf', 'big/m-F16-00002-of-00002.gguf']);
});

test('what_is_missing_is_named', async () => {
  const cases: [Promise<unknown>, RegExp][] = [
    [resolveHub(model('Q2_K'), hub(FILES)), /no Q2_K file; it has m-Q8_0\.gguf, m-Q4_K_M/],
    [resolveHub(model(null), hub(['README.md'])), /no GGUF model; it has no \.gguf file/],
    [resolveHub(model(null), hub([], 404)), /no such public repository/],
    [resolveHub(model('F16'), hub(['m-F16-00002-of-00002.gguf'])), /shard m-F16-00001-of-00002\.gguf is missing/],
  ];
  for (const [work, pattern] of cases) {
    await assert.rejects(work, (error) => error instanceof EdgeError && error.code === 'not-found' && pattern.test(error.message));
  }
});

test('shards_are_numbered_in_order_beyond_nine_and_other_names_are_not_split', () => {
  const shards = shardUrls('https://x.example/m-00003-of-00012.gguf?v=1') ?? [];
  assert.equal(shards.length, 12);
  assert.equal(shards[9], 'https://x.example/m-00010-of-00012.gguf?v=1');
  for (const name of ['m.gguf', 'm-3-of-12.gguf', 'm-00001-of-00000.gguf', 'm-00001-of-99999.gguf']) assert.equal(shardUrls(name), null);
});

test('a_hub_model_that_is_stored_is_found_without_the_hub_and_a_part_of_one_is_not', async () => {
  const store = new Store(memoryPlace(), 16);
  const context = { store, signal: new AbortController().signal, findOnHub: (wanted: HubModel) => resolveHub(wanted, hub([], 404)) } as unknown as PlacingContext;
  const place = () => placeModel([{ kind: 'hub', ...model('F16') }], context);
  for (const name of ['big/m-F16-00002-of-00002.gguf', 'big/m-F16-00001-of-00002.gguf']) {
    await assert.rejects(place(), /no such public repository/);
    const url = `https://huggingface.co/o/r/resolve/main/${name}`;
    const entry = await store.write({ key: url, url, name, model: 'hf:o/r:F16', files: 2 }, { validator: null, total: 3 }, null);
    await entry?.write(Uint8Array.of(1, 2, 3));
    await entry?.commit('0'.repeat(64));
  }
  const { name, files } = await place();
  assert.deepEqual([name, files.map((file) => file.kind === 'url' && file.name)], ['hf:o/r:F16', ['big/m-F16-00001-of-00002.gguf', 'big/m-F16-00002-of-00002.gguf']]);
});

/** A fetch that is the hub: it fails as often as `faults` has statuses, and has one tiny model. */
function fakeHub(faults: number[]): { fetch: typeof fetch; asked: string[]; headers: (string | null)[] } {
  const body = tinyModel(3);
  const asked: string[] = [];
  const headers: (string | null)[] = [];
  return {
    asked, headers,
    fetch: (async (url: string, init?: RequestInit) => {
      asked.push(url);
      headers.push(new Headers(init?.headers).get('authorization'));
      const status = faults.shift() ?? 200;
      if (status !== 200) return new Response('', { status });
      if (url.includes('/api/')) return Response.json([{ type: 'file', path: 'tiny-Q8_0.gguf', size: body.length }]);
      return new Response(body as Uint8Array<ArrayBuffer>, { headers: { 'content-length': String(body.length) } });
    }) as typeof fetch,
  };
}

const INIT = { model: 'hf:o/r:Q8_0', cache: 'none', backend: 'cpu', headers: { authorization: 'Bearer me' } } as const;

test('a_model_of_the_hub_is_loaded_by_the_callers_fetch_and_a_busy_hub_is_asked_again', async () => {
  const { fetch, asked, headers } = fakeHub([503, 429]);
  const edge = await HanzoEdge.init({ ...INIT, fetch });
  assert.deepEqual(asked, [...Array<string>(3).fill('https://huggingface.co/api/models/o/r/tree/main?recursive=true'), 'https://huggingface.co/o/r/resolve/main/tiny-Q8_0.gguf']);
  assert.deepEqual(headers, Array(4).fill('Bearer me'));
  assert.equal(edge.diagnostics.model, 'o/r');
  assert.notEqual((await edge.complete('hello', { maxTokens: 4, temperature: 0 }).result).tokens.length, 0);
  await edge.close();
});

test('a_refusal_of_the_hub_keeps_its_code_and_an_abort_its_reason', async () => {
  for (const [status, code] of [[404, 'not-found'], [403, 'not-found']] as const) {
    const { fetch, asked } = fakeHub([status]);
    await assert.rejects(HanzoEdge.init({ ...INIT, fetch }), (error: EdgeError) => error.name === 'EdgeError' && error.code === code && error.message.includes(String(status)));
    assert.equal(asked.length, 1, 'it is not asked again');
  }
  let isAborted = false;
  const silent = ((_url: string, { signal }: RequestInit) => new Promise((_resolve, reject) => {
    signal?.addEventListener('abort', () => { isAborted = true; reject(signal.reason as Error); });
  })) as typeof fetch;
  const reason = new Error('enough');
  await assert.rejects(HanzoEdge.init({ ...INIT, fetch: silent, signal: abortedAfter(50, reason) }), reason);
  for (let i = 0; i < 50 && !isAborted; i += 1) await new Promise((resolve) => { setTimeout(resolve, 10); });
  assert.ok(isAborted, 'the request is stopped');
});

function abortedAfter(ms: number, reason: Error): AbortSignal {
  const control = new AbortController();
  setTimeout(() => control.abort(reason), ms);
  return control.signal;
}
