// A small static file server for the demo page and the tests: ranges, the right types, and the headers that give a page
// SharedArrayBuffer. It serves only the folders and files it is given, on this machine only.

import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize, sep } from 'node:path';
import { Stop } from './shell.mjs';

const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm',
};

/**
 * Starts a server. `routes` maps a path to what is there: `'/dist/'` to a folder, `'/models/x.gguf'` to a file, any path
 * to an object, which is sent as JSON, or to a function, which answers `(request, response)` itself after the isolation
 * headers were set; the longest path that fits wins. Without a `port`, any free one is taken;
 * with `orNext`, the next free one after it. Pages are cross-origin isolated, unless `isolated` is false, as they are on
 * most servers. `headers` go with every answer; `onFile` hears the path of every file that is sent. Resolves with
 * `{ url, port, close() }`.
 */
export async function serve(routes, { port = 0, orNext = false, isolated = true, headers = {}, onFile } = {}) {
  const server = createServer((request, response) => {
    answer({ routes, isolated, extra: headers, onFile }, request, response).catch((error) => {
      if (!response.headersSent) response.writeHead(500);
      response.end(String(error.message ?? error));
    });
  });
  const bound = await listen(server, port, orNext ? port + 20 : port);
  return {
    url: `http://127.0.0.1:${bound}/`,
    port: bound,
    close: () => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); }),
  };
}

async function listen(server, first, last) {
  for (let port = first; ; port += 1) {
    const code = await new Promise((resolve) => {
      server.once('error', (error) => resolve(error.code));
      server.listen(port, '127.0.0.1', () => resolve(null));
    });
    if (!code) return server.address().port;
    if (port >= last || !['EADDRINUSE', 'EACCES'].includes(code)) throw new Stop(`port ${port} cannot be used: ${code}`);
  }
}

async function answer({ routes, isolated, extra, onFile }, request, response) {
  const headers = {
    ...(isolated ? { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' } : {}),
    'cross-origin-resource-policy': 'same-origin',
    'cache-control': 'no-cache',
    ...extra,
  };
  if (!['GET', 'HEAD'].includes(request.method)) return end(response, 405, { ...headers, allow: 'GET, HEAD' });
  const path = decodedPath(request.url);
  const found = path === null ? null : resolveRoute(routes, path);
  if (found === null) return end(response, 404, headers, 'not found');
  if (typeof found === 'function') {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    return found(request, response);
  }
  if (typeof found === 'object') return end(response, 200, { ...headers, 'content-type': TYPES['.json'] }, JSON.stringify(found));
  const info = await stat(found).catch(() => null);
  if (!info?.isFile()) return end(response, 404, headers, 'not found');
  onFile?.(found);
  headers['content-type'] = TYPES[extname(found)] ?? 'application/octet-stream';
  headers['accept-ranges'] = 'bytes';
  headers.etag = `"${info.size}-${Math.floor(info.mtimeMs)}"`;
  if (request.headers['if-none-match'] === headers.etag) return end(response, 304, headers);
  const range = rangeOf(request.headers.range, info.size);
  if (range === 'invalid') return end(response, 416, { ...headers, 'content-range': `bytes */${info.size}` });
  const [start, last] = range ?? [0, info.size - 1];
  if (range) headers['content-range'] = `bytes ${start}-${last}/${info.size}`;
  headers['content-length'] = last - start + 1;
  response.writeHead(range ? 206 : 200, headers);
  if (request.method === 'HEAD' || info.size === 0) return response.end();
  createReadStream(found, { start, end: last }).on('error', () => response.destroy()).pipe(response);
}

function end(response, status, headers, body = '') {
  response.writeHead(status, headers);
  response.end(body);
}

/** What a path leads to: a file's path, an object, a function, or null. */
function resolveRoute(routes, path) {
  const fitting = Object.keys(routes).filter((route) => (route.endsWith('/') ? path.startsWith(route) : path === route));
  const route = fitting.sort((a, b) => b.length - a.length)[0];
  if (route === undefined) return null;
  const target = routes[route];
  if (typeof target !== 'string' || !route.endsWith('/')) return target;
  const inside = path.slice(route.length);
  const file = normalize(join(target, inside === '' || inside.endsWith('/') ? `${inside}index.html` : inside));
  return file.startsWith(normalize(target.endsWith(sep) ? target : target + sep)) ? file : null;
}

/** The path of a request without its query; null when it cannot be decoded or climbs. */
function decodedPath(url) {
  try {
    const path = decodeURIComponent(url.split(/[?#]/)[0]);
    return path.includes('\0') || path.split(/[/\\]/).includes('..') ? null : path;
  } catch {
    return null;
  }
}

/** `[first, last]` of a single-range header, null without one, 'invalid' when it cannot be satisfied. */
function rangeOf(header, size) {
  if (!header) return null;
  const match = /^bytes=(\d*)-(\d*)$/.exec(header.trim());
  if (!match || (match[1] === '' && match[2] === '')) return null;
  const [first, last] = match[1] === '' ? [Math.max(0, size - Number(match[2])), size - 1] : [Number(match[1]), match[2] === '' ? size - 1 : Math.min(Number(match[2]), size - 1)];
  return first > last || first >= size ? 'invalid' : [first, last];
}
