// A local HTTP server whose faults are drawn from a seed: connections cut, errors, lies, wrong ranges, changing versions.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';

/** Numbers in [0, 1) from a seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** What one answer does wrong; `at` is a share of its body. */
type Fault =
  | { kind: 'none' | 'ignored-range' | 'other-range' | 'hidden-range' | 'web-page' | 'gzip' | 'unsatisfiable' | 'other-etag' | 'no-etag' | 'refused' | 'surplus' }
  | { kind: 'cut' | 'stall' | 'truncated' | 'bit-flip'; at: number }
  | { kind: 'status'; status: number };

/** Faults that a client can see without knowing the file. */
const VISIBLE: ((random: () => number) => Fault)[] = [
  () => ({ kind: 'cut', at: 0 }),
  () => ({ kind: 'cut', at: 1e-9 }),
  () => ({ kind: 'cut', at: 0.6 }),
  () => ({ kind: 'cut', at: 1 - 1e-9 }),
  (random) => ({ kind: 'cut', at: random() }),
  (random) => ({ kind: 'stall', at: random() }),
  (random) => ({ kind: 'status', status: [429, 500, 502, 503, 504][Math.floor(random() * 5)] ?? 500 }),
  () => ({ kind: 'ignored-range' }),
  () => ({ kind: 'other-range' }),
  () => ({ kind: 'hidden-range' }),
  () => ({ kind: 'web-page' }),
  () => ({ kind: 'gzip' }),
  () => ({ kind: 'unsatisfiable' }),
  () => ({ kind: 'other-etag' }),
  () => ({ kind: 'no-etag' }),
  () => ({ kind: 'refused' }),
];

/** Faults that only a known size and hash reveal. */
const HIDDEN: typeof VISIBLE = [
  (random) => ({ kind: 'truncated', at: random() }),
  (random) => ({ kind: 'bit-flip', at: random() }),
  () => ({ kind: 'surplus' }),
];

/** Draws the fault of one answer: none with the share `calm`. */
export function drawFault(random: () => number, { calm, knowsHash }: { calm: number; knowsHash: boolean }): Fault {
  if (random() < calm) return { kind: 'none' };
  const kinds = knowsHash ? [...VISIBLE, ...HIDDEN] : VISIBLE;
  return kinds[Math.floor(random() * kinds.length)]?.(random) ?? { kind: 'none' };
}

/** Answers a request for `body` with a fault. */
export function answerWith(fault: Fault, body: Uint8Array, request: IncomingMessage, response: ServerResponse): void {
  const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
  const start = range ? Number(range[1]) : 0;
  const end = range?.[2] ? Math.min(Number(range[2]) + 1, body.length) : body.length;
  switch (fault.kind) {
    case 'refused':
      request.socket.destroy();
      return;
    case 'status':
      response.writeHead(fault.status, { 'retry-after': '0' }).end('no');
      return;
    case 'web-page':
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>Sign in</title>');
      return;
    case 'unsatisfiable':
      response.writeHead(416, { 'content-range': `bytes */${body.length}` }).end();
      return;
    case 'gzip': {
      const packed = gzipSync(body);
      response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': packed.length, etag: '"v1-gzip"' }).end(packed);
      return;
    }
    case 'other-range': {
      if (!range) break;
      const shifted = Math.max(0, start - 7);
      const wrong = body.subarray(shifted, Math.max(shifted, end - 7));
      response.writeHead(206, { 'content-length': wrong.length, 'content-range': `bytes ${shifted}-${shifted + wrong.length - 1}/${body.length}`, etag: '"v1"' }).end(wrong);
      return;
    }
  }
  const isRange = range !== null && fault.kind !== 'ignored-range';
  send(fault, isRange ? body.subarray(start, end) : body, isRange ? `bytes ${start}-${end - 1}/${body.length}` : null, response);
}

/** Sends a part or all of a file, with a fault in its head, its bytes or its end. */
function send(fault: Fault, part: Uint8Array, range: string | null, response: ServerResponse): void {
  const etag = fault.kind === 'other-etag' ? `"v${Math.random()}"` : '"v1"';
  const isLengthKnown = fault.kind !== 'truncated' && fault.kind !== 'surplus';
  response.writeHead(range ? 206 : 200, {
    ...(isLengthKnown ? { 'content-length': part.length } : {}),
    ...(fault.kind === 'no-etag' ? {} : { etag }),
    ...(range && fault.kind !== 'hidden-range' ? { 'content-range': range } : {}),
  });
  const at = 'at' in fault ? Math.min(part.length, Math.ceil(fault.at * part.length)) : part.length;
  switch (fault.kind) {
    case 'cut':
      // What was sent shall arrive before the connection goes.
      response.write(part.subarray(0, at), () => setTimeout(() => response.destroy(), 5));
      return;
    case 'stall':
      response.write(part.subarray(0, at));
      return;
    case 'truncated':
      response.end(part.subarray(0, at));
      return;
    case 'surplus':
      response.end(Buffer.concat([part, new Uint8Array(100)]));
      return;
    case 'bit-flip': {
      const wrong = part.slice();
      const index = Math.min(at, wrong.length - 1);
      wrong[index] = (wrong[index] ?? 0) ^ 0x10;
      response.end(wrong);
      return;
    }
    default:
      response.end(part);
  }
}
