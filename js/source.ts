// What the caller names as a model, turned into plain descriptions of files that can be sent to the engine's side.

import { EdgeError } from './errors.js';
import { parseHubName, shardUrls } from './model-names.js';
import { isNode, node } from './platform.js';
import type { FileSpec } from './protocol.js';
import type { ModelFile, ModelSource, ModelUrl } from './types.js';

/** Takes a stream that stays on the caller's side and returns the number of its resource. */
export type KeepStream = (stream: ReadableStream<Uint8Array>) => number;

/** Describes the files of a model. */
export function describeSource(source: ModelSource, keepStream: KeepStream): FileSpec[] {
  if (!isList(source)) return describeFile(source, keepStream);
  if (source.length === 0) throw new EdgeError('invalid-argument', 'expected at least one shard, found an empty list', { path: 'model' });
  const specs = source.flatMap((file, index) => {
    const [spec] = describeFile(file, keepStream, index);
    return spec ? [spec] : [];
  });
  if (specs.some((spec) => spec.kind === 'hub' || spec.kind === 'name')) {
    throw new EdgeError('invalid-argument', 'a list of shards holds files, not model names', { path: 'model' });
  }
  return specs;
}

/** The name of the model that these files are: the registry's, the hub's, or the first file's without its ending. */
export function modelName([first]: readonly FileSpec[]): string {
  if (!first) return 'model';
  return first.kind === 'hub' ? `${first.owner}/${first.repo}` : first.name.replace(/(-\d{5}-of-\d{5})?\.gguf$/i, '');
}

function isList(source: ModelSource): source is readonly ModelFile[] {
  return Array.isArray(source);
}

function describeFile(file: ModelFile, keepStream: KeepStream, shard?: number): FileSpec[] {
  const suffix = shard === undefined ? '' : ` ${shard + 1}`;
  if (typeof file === 'string') return describeString(file, shard !== undefined);
  if (file instanceof URL) return describeUrl({ url: file }, shard !== undefined);
  if (file instanceof Uint8Array) return [{ kind: 'bytes', bytes: file, name: `bytes${suffix}` }];
  if (typeof Blob === 'function' && file instanceof Blob) return [{ kind: 'blob', blob: file, name: 'name' in file && typeof file.name === 'string' ? file.name : `blob${suffix}` }];
  if (typeof ReadableStream === 'function' && file instanceof ReadableStream) return [{ kind: 'stream', resource: keepStream(file), name: `stream${suffix}` }];
  if (typeof FileSystemFileHandle === 'function' && file instanceof FileSystemFileHandle) return [{ kind: 'handle', handle: file, name: file.name }];
  if (isModelUrl(file)) return describeUrl(file, shard !== undefined);
  throw new EdgeError('invalid-argument', 'expected a model name, a URL, a Blob, a Uint8Array, a ReadableStream, a file handle, { url } or a list of these', { path: 'model' });
}

function isModelUrl(value: unknown): value is ModelUrl {
  return typeof value === 'object' && value !== null && 'url' in value && (typeof value.url === 'string' || value.url instanceof URL);
}

/** A registry name has neither a slash nor a suffix; whatever else is no URL is a path (Node) or relative to the page. */
function describeString(text: string, isShard: boolean): FileSpec[] {
  if (text === '') throw new EdgeError('invalid-argument', 'expected a model name or URL, found an empty string', { path: 'model' });
  const hub = parseHubName(text);
  if (hub) return [{ kind: 'hub', ...hub }];
  if (/^[\w-]+(\.\d[\w-]*)*$/.test(text)) return [{ kind: 'name', name: text }];
  if (/^[a-z][a-z0-9+.-]*:\/\/|^(blob|data):/i.test(text)) return describeUrl({ url: text }, isShard);
  if (isNode()) return pathSpecs(text, isShard);
  return describeUrl({ url: text }, isShard);
}

function describeUrl(model: ModelUrl, isShard: boolean): FileSpec[] {
  const base = typeof location === 'undefined' ? undefined : location.href;
  const url = parsedUrl(model.url, base);
  if (model.sha256 !== undefined && !/^[0-9a-f]{64}$/i.test(model.sha256)) {
    throw new EdgeError('invalid-argument', `expected a SHA-256 of 64 hexadecimal digits, found ${model.sha256}`, { path: 'model.sha256' });
  }
  if (url.protocol === 'file:' && isNode()) return pathSpecs(node().url.fileURLToPath(url), isShard);
  const known = { ...(model.sha256 ? { sha256: model.sha256.toLowerCase() } : {}), ...(model.bytes === undefined ? {} : { bytes: model.bytes }) };
  const mirrors = (model.mirrors ?? []).map((mirror) => parsedUrl(mirror, base).href);
  const shards = isShard || model.sha256 || mirrors.length > 0 ? null : shardUrls(url.href);
  return (shards ?? [url.href]).map((href) => ({ kind: 'url', urls: [href, ...mirrors], name: nameOf(href), ...known }));
}

function parsedUrl(url: string | URL, base: string | undefined): URL {
  try {
    return new URL(url, base);
  } catch {
    throw new EdgeError('invalid-argument', `expected a URL, found ${String(url)}`, { path: 'model' });
  }
}

function pathSpecs(path: string, isShard: boolean): FileSpec[] {
  const { resolve, basename } = node().path;
  const shards = isShard ? null : shardUrls(path);
  return (shards ?? [path]).map((part) => ({ kind: 'path', path: resolve(part), name: basename(part) }));
}

function nameOf(url: string): string {
  const last = new URL(url).pathname.split('/').at(-1) ?? '';
  try {
    return decodeURIComponent(last) || url;
  } catch {
    return last;
  }
}
