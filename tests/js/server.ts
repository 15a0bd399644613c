// A local HTTP server that misbehaves as it is told, for the download tests.

import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after } from 'node:test';

/** A running server. */
export interface TestServer {
  url: string;
  /** The Range header of every request, in order; null without one. */
  ranges: (string | null)[];
  close(): Promise<void>;
}

const servers = new Set<TestServer>();
// A test that failed leaves its server running, which would keep the process alive.
after(async () => { for (const server of servers) await server.close(); });

type Answer = (request: IncomingMessage, response: ServerResponse, count: number) => void;

/** Serves every request by `answer`, which is told how many came before. */
export async function startServer(answer: Answer): Promise<TestServer> {
  const ranges: (string | null)[] = [];
  const server = createServer((request, response) => {
    ranges.push(request.headers.range ?? null);
    answer(request, response, ranges.length - 1);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const running: TestServer = {
    url: `http://127.0.0.1:${port}/model.gguf`,
    ranges,
    close: () => new Promise((resolve) => { server.close(() => resolve()); server.closeAllConnections(); }),
  };
  servers.add(running);
  return running;
}

/** Sends a body as a good server does, ranges included; `cut` breaks the connection after that many bytes. */
export function sendFile(request: IncomingMessage, response: ServerResponse, body: Uint8Array, { etag = '"v1"', cut = Number.POSITIVE_INFINITY, ranges = true } = {}): void {
  const match = ranges ? /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') : null;
  const start = match ? Number(match[1]) : 0;
  const end = match?.[2] ? Math.min(Number(match[2]) + 1, body.length) : body.length;
  if (start > 0 && start >= body.length) {
    response.writeHead(416, { 'content-range': `bytes */${body.length}` }).end();
    return;
  }
  const part = body.subarray(start, end);
  response.writeHead(match ? 206 : 200, {
    'content-length': part.length,
    etag,
    ...(match ? { 'content-range': `bytes ${start}-${end - 1}/${body.length}` } : {}),
  });
  if (cut >= part.length) response.end(part);
  else response.write(part.subarray(0, cut), () => setTimeout(() => response.destroy(), 20));
}

/** Bytes that look like a model file at the start and differ everywhere. */
export function modelBytes(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i += 1) bytes[i] = (i * 2654435761) >>> 24;
  bytes.set(new TextEncoder().encode('GGUF').subarray(0, Math.min(4, length)));
  return bytes;
}
