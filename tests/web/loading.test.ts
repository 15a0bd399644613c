// Downloads and stores in headless Chromium: pages that are closed in the middle, tabs that share a download, models that
// are used without their server, quotas, and what is told before a download.

import assert from 'node:assert/strict';
import { createReadStream, statSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { after, afterEach, before, test } from 'node:test';
import type { BrowserContext, Page } from 'playwright-core';
import type { Availability, Diagnostics, EdgeOptions, HanzoEdge as Engine, MemoryReport, ModelInfo, Plan, Progress } from '@hanzo/edge';
import { modelBytes, sendFile } from '../js/server.js';
import { startSite } from './browser.js';
import type { Site } from './browser.js';
import { value } from './calls.js';
import type { Outcome } from './calls.js';

const MEGABYTE = 1 << 20;
const CHUNK_BYTES = 4 * MEGABYTE;
/** Three chunks, the last one short: two ranges. */
const BODY = modelBytes(10 * MEGABYTE);
const MODEL = process.env.HANZO_EDGE_MODEL ?? '';

/** What the model's server does, and what it was asked. */
const server = {
  /** Bytes after which answers stop without ending. */
  holdAfter: Number.POSITIVE_INFINITY,
  isDown: false,
  delayMs: 0,
  ranges: [] as string[],
  sentBytes: 0,
  /** Answers that are held. */
  held: [] as ServerResponse[],
  reset() {
    for (const response of this.held) response.destroy();
    Object.assign(this, { holdAfter: Number.POSITIVE_INFINITY, isDown: false, delayMs: 0, ranges: [], sentBytes: 0, held: [] });
  },
};

function answerFake(request: IncomingMessage, response: ServerResponse): void {
  server.ranges.push(request.headers.range ?? '');
  if (server.isDown) return void request.socket.destroy();
  if (server.holdAfter < Number.POSITIVE_INFINITY) {
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
    const [start, end] = range ? [Number(range[1]), Math.min(Number(range[2]) + 1, BODY.length)] : [0, BODY.length];
    response.writeHead(206, { 'content-length': end - start, 'content-range': `bytes ${start}-${end - 1}/${BODY.length}`, etag: '"v1"' });
    // What is sent whole must end, or the next request of its connection waits.
    if (end - start <= server.holdAfter) return void response.end(BODY.subarray(start, end));
    response.write(BODY.subarray(start, start + server.holdAfter));
    server.held.push(response);
    return;
  }
  setTimeout(() => sendFile(request, response, BODY), server.delayMs);
}

/** A size that no browser has room for. */
const HUGE_BYTES = 2 ** 42;

/** The real model, whose sent bytes are counted; or, said to be of `total` bytes, its beginning. */
function answerReal(request: IncomingMessage, response: ServerResponse, total?: number): void {
  if (server.isDown) return void request.socket.destroy();
  const size = total ?? statSync(MODEL).size;
  const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
  const [start, last] = range ? [Number(range[1]), Math.min(Number(range[2]), size - 1)] : [0, size - 1];
  response.writeHead(range ? 206 : 200, { 'content-length': last - start + 1, etag: '"real"', ...(range ? { 'content-range': `bytes ${start}-${last}/${size}` } : {}) });
  createReadStream(MODEL, { start, end: last }).on('data', (chunk) => { server.sentBytes += chunk.length; }).pipe(response);
}

let site: Site;
let context: BrowserContext;
before(async () => {
  assert.ok(MODEL, 'HANZO_EDGE_MODEL must name the default model file: run `npm test`');
  site = await startSite({ '/fake.gguf': answerFake, '/real.gguf': (request, response) => answerReal(request, response), '/huge.gguf': (request, response) => answerReal(request, response, HUGE_BYTES) });
  context = await site.browser.newContext();
});
afterEach(async () => {
  server.reset();
  // Every test begins with an origin that stores nothing.
  await context.close();
  context = await site.browser.newContext();
});
after(async () => {
  await context?.close();
  await site?.close();
});

async function openPage(): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`${site.url}test/loading.html`);
  await page.waitForFunction(() => 'attempt' in globalThis);
  return page;
}

/** The page's globals, for functions that run there. */
interface PageGlobals {
  HanzoEdge: typeof Engine;
  attempt<T>(work: () => Promise<T>): Promise<Outcome<T>>;
}

/** Options that can be sent to the page as they are. */
type PlainOptions = Pick<EdgeOptions, 'backend' | 'cache' | 'maxContextTokens'> & { model?: string; worker?: boolean };

const FAKE = '/fake.gguf';
const download = (page: Page, url = FAKE, options: PlainOptions = {}) => page.evaluate(([model, more]) => {
  const { HanzoEdge, attempt } = globalThis as unknown as PageGlobals;
  return attempt(async () => {
    const seen: Progress[] = [];
    await HanzoEdge.models.download(model, { ...more, onProgress: (progress) => seen.push(progress) });
    return seen;
  });
}, [url, options] as const);
const list = (page: Page): Promise<ModelInfo[]> => page.evaluate(() => (globalThis as unknown as PageGlobals).HanzoEdge.models.list());
const availability = (page: Page, options: PlainOptions): Promise<Availability> => page.evaluate((given) => (globalThis as unknown as PageGlobals).HanzoEdge.availability(given), options);
const plan = (page: Page, options: PlainOptions): Promise<Outcome<Plan>> => page.evaluate((given) => {
  const { HanzoEdge, attempt } = globalThis as unknown as PageGlobals;
  return attempt(() => HanzoEdge.plan(given));
}, options);

/** Waits until something holds. */
async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    if (await holds()) return;
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
  assert.fail(`it never came to this: ${what}`);
}

for (const { kind, worker } of [{ kind: 'opfs', worker: true }, { kind: 'cache-api', worker: false }] as const) {
  test(`a_page_closed_in_the_middle_of_a_download_to_${kind}_continues_there`, async () => {
    const [page, other] = [await openPage(), await openPage()];
    server.holdAfter = 5 * MEGABYTE;
    void download(page, FAKE, { worker }).catch(() => {});
    await until('a chunk is stored', async () => (await list(other))[0]?.bytes === CHUNK_BYTES);
    const [half] = await list(other);
    assert.deepEqual([half?.complete, half?.where, half?.totalBytes, half?.url], [false, kind, BODY.length, `${site.url}fake.gguf`]);
    await page.close();
    server.reset();
    const progress = value(await download(other, FAKE, { worker }));
    assert.equal(server.ranges[0], `bytes=${CHUNK_BYTES}-${CHUNK_BYTES + 8 * MEGABYTE - 1}`);
    assert.deepEqual([progress.at(-1)?.loaded, progress.at(-1)?.total], [BODY.length, BODY.length]);
    assert.ok(progress.every(({ loaded }, i) => loaded >= (progress[i - 1]?.loaded ?? 0) && loaded <= BODY.length));
    const [whole] = await list(other);
    assert.deepEqual([whole?.complete, whole?.bytes, whole?.where], [true, BODY.length, kind]);
    server.isDown = true;
    assert.ok(!(await download(other, FAKE, { worker })).error, 'what is stored needs no server');
    await other.evaluate(() => (globalThis as unknown as PageGlobals).HanzoEdge.models.delete('/fake.gguf'));
    assert.deepEqual(await list(other), []);
  });
}

test('two_tabs_make_one_download', async () => {
  const pages = [await openPage(), await openPage()];
  server.delayMs = 300;
  const both = await Promise.all(pages.map((page) => download(page)));
  for (const outcome of both) assert.equal(value(outcome).at(-1)?.loaded, BODY.length);
  assert.deepEqual([...server.ranges].sort(), ['bytes=0-8388607', `bytes=8388608-${BODY.length - 1}`]);
});

test('a_model_of_the_hub_is_looked_up_by_the_page_and_downloaded_by_the_worker', async () => {
  const page = await openPage();
  const asked: string[] = [];
  await context.route('https://huggingface.co/**', async (route) => {
    const { pathname } = new URL(route.request().url());
    asked.push(pathname);
    const headers = { 'access-control-allow-origin': '*' };
    if (pathname.startsWith('/api/')) await route.fulfill({ headers, json: [{ type: 'file', path: 'm-Q4_1.gguf', size: BODY.length }] });
    else await route.fulfill({ headers, body: Buffer.from(BODY), contentType: 'application/octet-stream' });
  });
  value(await download(page, 'hf:o/r'));
  assert.deepEqual([asked[0], asked.at(-1)], ['/api/models/o/r/tree/main', '/o/r/resolve/main/m-Q4_1.gguf']);
  const [model] = await list(page);
  assert.deepEqual([model?.name, model?.complete, model?.bytes], ['hf:o/r', true, BODY.length]);
});

test('a_tab_that_waits_takes_over_when_the_first_one_dies', async () => {
  const [first, second] = [await openPage(), await openPage()];
  server.holdAfter = 5 * MEGABYTE;
  void download(first).catch(() => {});
  await until('a chunk is stored', async () => (await list(second))[0]?.bytes === CHUNK_BYTES);
  assert.equal(await availability(second, { model: FAKE }), 'unavailable', 'it is no model, after all');
  const waiting = download(second);
  await new Promise((resolve) => { setTimeout(resolve, 700); });
  server.reset();
  await first.close();
  const progress = value(await waiting);
  assert.equal(progress.at(-1)?.loaded, BODY.length);
  assert.equal(server.ranges[0], `bytes=${CHUNK_BYTES}-${CHUNK_BYTES + 8 * MEGABYTE - 1}`);
});

test('a_model_is_planned_from_its_header_then_stored_then_used_without_its_server', async () => {
  const page = await openPage();
  const options: PlainOptions = { model: '/real.gguf', backend: 'cpu', maxContextTokens: 512 };
  assert.equal(await availability(page, options), 'downloadable');
  const { size } = statSync(MODEL);
  server.sentBytes = 0;
  const planned = value(await plan(page, options));
  assert.ok(server.sentBytes < 8 * MEGABYTE, `${server.sentBytes} bytes were read to plan`);
  assert.deepEqual([planned.downloadBytes, planned.fits, planned.backend, planned.quantization, planned.contextTokens], [size, true, 'cpu', 'q4_1', 512]);
  value(await download(page, '/real.gguf'));
  server.isDown = true;
  assert.equal(await availability(page, options), 'available');
  assert.equal(value(await plan(page, options)).downloadBytes, 0);
  const { diagnostics, memory, text } = await useModel(page, options);
  assert.deepEqual([diagnostics.cache, text], [{ kind: 'opfs', hit: true }, 'Gravity']);
  assertNear(planned, memory);
});

test('a_plan_for_a_gpu_is_what_its_memory_can_become', async () => {
  const page = await openPage();
  const options: PlainOptions = { model: '/real.gguf', backend: 'webgpu', maxContextTokens: 512 };
  const planned = value(await plan(page, options));
  assert.deepEqual([planned.fits, planned.backend], [true, 'webgpu']);
  const { diagnostics, memory } = await useModel(page, options);
  assert.deepEqual(diagnostics.cache, { kind: 'opfs', hit: false });
  assertNear(planned, memory, ['weights', 'kv']);
  // Buffers for long prompts come with the first of them, which a software GPU reads too slowly to wait for.
  assert.ok(memory.scratchBytes > 0 && memory.scratchBytes <= planned.memoryBytes.scratch, `scratch: ${planned.memoryBytes.scratch} planned, ${memory.scratchBytes} held`);
});

/** Loads a model, lets it read a long prompt and say a word, and closes it. */
async function useModel(page: Page, options: PlainOptions): Promise<{ diagnostics: Diagnostics; memory: MemoryReport; text: string }> {
  return value(await page.evaluate((given) => {
    const { HanzoEdge, attempt } = globalThis as unknown as PageGlobals;
    return attempt(async () => {
      const edge = await HanzoEdge.init(given);
      if (given.backend === 'cpu') await edge.complete('word '.repeat(300), { temperature: 0, maxTokens: 1 }).result;
      // Before another conversation: that of the first one is kept aside then.
      const memory = await edge.memory();
      const { text } = await edge.chat([{ role: 'user', content: 'What is gravity?' }], { temperature: 0, maxTokens: 2 }).result;
      const { diagnostics } = edge;
      await edge.close();
      return { diagnostics: JSON.parse(JSON.stringify(diagnostics)) as Diagnostics, memory, text };
    });
  }, options));
}

const PARTS = ['weights', 'kv', 'scratch', 'total'] as const;

function assertNear({ memoryBytes: { weights, kv, scratch, total } }: Plan, { weightsBytes, kvBytes, scratchBytes }: MemoryReport, names: readonly (typeof PARTS)[number][] = PARTS): void {
  const parts = { weights: [weights, weightsBytes], kv: [kv, kvBytes], scratch: [scratch, scratchBytes], total: [total, weightsBytes + kvBytes + scratchBytes] } as const;
  console.log(`# planned and measured bytes: ${JSON.stringify(parts)}`);
  for (const name of names) {
    const [planned, measured] = parts[name];
    assert.ok(Math.abs(planned - measured) <= 0.1 * measured, `${name}: ${planned} were planned, ${measured} are held`);
  }
}

test('a_quota_that_is_too_small_is_told_before_the_download', async () => {
  const page = await openPage();
  // Browsers tell a quota that is not the real one; the real one shows when room is set aside.
  const session = await context.newCDPSession(page);
  await session.send('Storage.overrideQuotaForOrigin', { origin: new URL(site.url).origin, quotaSize: 2 * MEGABYTE });
  const { error } = await download(page);
  assert.deepEqual([error?.isEdgeError, error?.code], [true, 'quota'], JSON.stringify(error));
  assert.match(error?.message ?? '', /needs 10485760 bytes of storage, which this device refuses to give/);
  assert.ok(server.ranges.length <= 2, 'no range but those that are asked for at once');
  assert.deepEqual(await list(page), []);
});

test('a_model_that_is_larger_than_the_quota_is_planned_as_such', async () => {
  const page = await openPage();
  const options: PlainOptions = { model: '/huge.gguf', backend: 'cpu' };
  const planned = value(await plan(page, options));
  assert.deepEqual([planned.fits, planned.code, planned.downloadBytes], [false, 'quota', HUGE_BYTES]);
  assert.match(planned.reason, /needs 4398046511104 bytes of storage, but \d+ are free \(\d+ of \d+ are used\)/);
  assert.equal(await availability(page, options), 'unavailable');
  assert.equal(await availability(page, { ...options, cache: 'none' }), 'downloadable');
  assert.equal((await download(page, '/huge.gguf')).error?.code, 'quota');
});

test('a_download_can_be_aborted_and_the_browser_asked_to_keep_what_is_stored', async () => {
  const page = await openPage();
  server.holdAfter = MEGABYTE;
  const { error } = await page.evaluate(() => {
    const { HanzoEdge, attempt } = globalThis as unknown as PageGlobals;
    const control = new AbortController();
    setTimeout(() => control.abort(new Error('enough')), 500);
    return attempt(() => HanzoEdge.models.download('/fake.gguf', { signal: control.signal }));
  });
  assert.equal(error?.message, 'enough');
  assert.equal(typeof (await page.evaluate(() => (globalThis as unknown as PageGlobals).HanzoEdge.models.persist())), 'boolean');
});
