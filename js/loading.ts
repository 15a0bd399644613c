// Loads a model: finds its files, opens a device, and carries bytes from the files to the WASM module as it asks for them.

import { openStore } from './cache.js';
import { EdgeError, isErrorData } from './errors.js';
import { FileWindow, openFile } from './files.js';
import type { FileContext, FileStream, PlacedFile } from './files.js';
import { adapterName, probeGpu } from './gpu.js';
import type { Gpu } from './gpu.js';
import type { Engine } from './hanzo-edge.js';
import { resolveHub } from './hub.js';
import type { WasmModule } from './modules.js';
import { cacheFolder, node } from './node.js';
import { TransferProgress } from './progress.js';
import type { FileSpec, LoadOptions, LoadedFacts } from './protocol.js';
import { isNode } from './support.js';
import { callExport, hasTrapped, noteTrap } from './traps.js';
import type { BackendName, Progress } from './types.js';

/** What the loader of the WASM module is told. */
interface LoaderOptions {
  backend: 'auto' | BackendName;
  /** The files' sizes, null where unknown. */
  lengths: (number | null)[];
  rejected: { backend: BackendName; reason: string }[];
  engine: LoadOptions['engine'];
}

/** What it asks for next. */
type LoaderNeed =
  | { need: 'prefix'; shard: number; bytes: number }
  | { need: 'range'; shard: number; start: number; end: number }
  | { need: 'open' }
  | { need: 'finish' };

/** What the engine says of itself. */
type EngineFacts = Pick<LoadedFacts, 'backend' | 'reason' | 'rejected' | 'device' | 'threads' | 'variants' | 'selfTest' | 'contextTokens' | 'weights'>;

/** What a load may use of its surroundings. */
export interface LoadContext {
  /** The module, started. */
  module: WasmModule;
  signal: AbortSignal;
  fetch: typeof fetch;
  openStream(resource: number): ReadableStream<Uint8Array>;
  onProgress(progress: Progress): void;
}

/** A loaded model with its device. */
export interface Loaded {
  engine: Engine;
  gpu: Gpu | null;
  facts: Omit<LoadedFacts, 'wasmReason'>;
}

/** Loads a model. */
export async function loadModel(options: LoadOptions, context: LoadContext): Promise<Loaded> {
  const store = await openStore(options.cache);
  const fileContext: FileContext = { ...context, headers: options.headers, store, makeHasher: () => new context.module.glue.Sha256() };
  const specs = await placeFiles(options.files, { ...context, headers: options.headers });
  const files = new ModelFiles(specs, fileContext, context.onProgress);
  try {
    await files.open();
    const { engine, gpu, rejected } = await load(options, files, context);
    const facts: EngineFacts = JSON.parse(engine.diagnostics()) as EngineFacts;
    // The browser tells pages of an adapter what it hides from WASM.
    const adapter = gpu && facts.backend === 'webgpu' ? { adapter: gpu.adapter, device: adapterName(gpu.adapter) } : {};
    if (facts.backend !== 'webgpu') gpu?.destroy();
    const allRejected = mergeRejected(rejected, facts.rejected);
    const cache = { kind: files.origin === 'caller' ? 'none' : (store?.kind ?? 'none'), hit: files.origin === 'cache' };
    return { engine, gpu: facts.backend === 'webgpu' ? gpu : null, facts: { ...facts, reason: reasonOf(options, facts, allRejected), rejected: allRejected, ...adapter, wasmModule: `${context.module.name}.wasm`, cache } };
  } catch (error) {
    await files.abandon(error);
    throw error;
  }
}

type Rejected = LoadedFacts['rejected'];

function mergeRejected(ours: Rejected, theirs: Rejected): Rejected {
  return [...ours, ...theirs.filter((row) => !ours.some((known) => known.backend === row.backend))];
}

function reasonOf(options: LoadOptions, facts: EngineFacts, rejected: Rejected): string {
  if (options.backend !== 'auto') return `backend: '${options.backend}' was asked for`;
  const others = rejected.filter((row) => row.backend !== facts.backend);
  if (others.length === 0) return 'the first choice works';
  return others.map((row) => `${row.backend}: ${row.reason}`).join('; ');
}

/** Drives the loader until there is an engine. */
async function load(options: LoadOptions, files: ModelFiles, context: LoadContext): Promise<{ engine: Engine; gpu: Gpu | null; rejected: Rejected }> {
  const probe = options.backend === 'cpu' ? { gpu: null, reason: '' } : await probeGpu(options.powerPreference, options.backend === 'webgpu');
  if (!probe.gpu && options.backend === 'webgpu') throw new EdgeError('not-found', `there is no usable GPU: ${probe.reason}`, { path: 'backend' });
  const rejected: Rejected = !probe.gpu && options.backend === 'auto' ? [{ backend: 'webgpu', reason: probe.reason }] : [];
  const { gpu } = probe;
  const loaderOptions: LoaderOptions = { backend: options.backend, lengths: files.lengths, rejected, engine: options.engine };
  const loader = new context.module.glue.Loader(JSON.stringify(loaderOptions));
  const open = () => callExport(() => loader.open());
  try {
    for (;;) {
      context.signal.throwIfAborted();
      const need = JSON.parse(loader.need()) as LoaderNeed;
      switch (need.need) {
        case 'prefix':
          loader.supply(await files.prefix(need.shard, need.bytes));
          break;
        case 'range':
          loader.supply(await files.range(need.shard, need.start, need.end));
          break;
        case 'open':
          await step('compile', context, () => (gpu ? gpu.lend(open) : open()));
          files.headersAreDone();
          break;
        case 'finish': {
          await files.drain();
          const engine = await step('warmup', context, () => callExport(() => loader.finish()));
          if (engine) return { engine, gpu, rejected };
          break;
        }
      }
    }
  } catch (error) {
    noteTrap(error);
    gpu?.destroy();
    throw error;
  } finally {
    if (!hasTrapped()) loader.free();
  }
}

/** A step without bytes to count. */
async function step<T>(phase: Progress['phase'], context: LoadContext, work: () => Promise<T>): Promise<T> {
  context.onProgress({ phase, loaded: 0, total: null });
  const value = await work();
  context.onProgress({ phase, loaded: 1, total: 1 });
  return value;
}

interface RegistryRow {
  name: string;
  file: string;
  bytes: number;
  sha256: string;
  sources: { url?: string }[];
}

/** Looks up what only a name says. */
async function placeFiles(specs: FileSpec[], context: Pick<LoadContext, 'module' | 'fetch' | 'signal'> & { headers: [string, string][] }): Promise<PlacedFile[]> {
  const placed: PlacedFile[] = [];
  for (const spec of specs) {
    if (spec.kind === 'hub') placed.push(...(await resolveHub(spec, context)));
    else if (spec.kind === 'name') placed.push(await fromRegistry(spec.name, context.module));
    else placed.push(spec);
  }
  return placed;
}

async function fromRegistry(name: string, { glue }: WasmModule): Promise<PlacedFile> {
  const rows = JSON.parse(glue.registry()) as RegistryRow[];
  const row = rows.find((candidate) => candidate.name === name);
  if (!row) {
    throw new EdgeError('not-found', `no model is named ${JSON.stringify(name)}; known: ${rows.map((known) => known.name).join(', ')} (or give a URL)`, { path: 'model' });
  }
  if (isNode()) {
    // Where the command line program and the set-up keep it, verified.
    const path = node().path.join(cacheFolder(), 'models', row.file);
    const info = await node().fs.stat(path).catch(() => null);
    if (info?.size === row.bytes) return { kind: 'path', path, name: row.file };
  }
  const urls = row.sources.flatMap((source) => (source.url ? [source.url] : []));
  return { kind: 'url', urls, name: row.file, sha256: row.sha256, bytes: row.bytes };
}

/** Beginnings up to this size are kept until the model is planned, since small tensors may be read before the others. */
const KEPT_BYTES = 64 << 20;

/** The files of a model as the loader sees them. */
class ModelFiles {
  readonly #specs: PlacedFile[];
  readonly #context: FileContext;
  readonly #report: (progress: Progress) => void;
  #windows: FileWindow[] = [];
  #progress: TransferProgress | null = null;
  #keepBytes = KEPT_BYTES;

  constructor(specs: PlacedFile[], context: FileContext, report: (progress: Progress) => void) {
    this.#specs = specs;
    this.#context = context;
    this.#report = report;
  }

  /** The files' sizes in bytes. */
  get lengths(): (number | null)[] {
    return this.#windows.map((window) => window.file.size);
  }

  /** Where the bytes come from: the network if any of them does. */
  get origin(): FileStream['origin'] {
    const origins = this.#windows.map((window) => window.file.origin);
    return origins.includes('network') ? 'network' : (origins[0] ?? 'caller');
  }

  async open(): Promise<void> {
    for (const spec of this.#specs) this.#windows.push(await this.#openWindow(spec));
    const total = this.lengths.reduce<number | null>((sum, size) => (sum === null || size === null ? null : sum + size), 0);
    this.#progress = new TransferProgress(this.origin === 'network' ? 'download' : 'upload', total, this.#report);
    for (const { file } of this.#windows) this.#progress.had(file.had);
  }

  async prefix(shard: number, bytes: number): Promise<Uint8Array> {
    return this.#window(shard).prefix(bytes);
  }

  /** Bytes `start..end`. The loader asks in ascending order, but begins again when a backend fails its test. */
  async range(shard: number, start: number, end: number): Promise<Uint8Array> {
    if (!this.#window(shard).has(start)) await this.#reopen(shard);
    return this.#window(shard).range(start, end - start, this.#keepBytes);
  }

  /** Nothing before the next range will be asked for again, unless everything is. */
  headersAreDone(): void {
    this.#keepBytes = 0;
  }

  /** Reads what is left, checks and stores the files. */
  async drain(): Promise<void> {
    for (const window of this.#windows) await window.drain();
    this.#progress?.finish(this.#windows.at(-1)?.file.name ?? '');
  }

  /** Lets the files go after an error; a download that turned out to be no good model is not continued later. */
  async abandon(error: unknown): Promise<void> {
    const isUseless = isErrorData(error) && ['malformed-file', 'integrity'].includes(error.code);
    for (const window of this.#windows) await window.file.close(isUseless ? 'discard' : 'keep').catch(() => {});
  }

  #window(shard: number): FileWindow {
    const window = this.#windows[shard];
    if (!window) throw new EdgeError('internal', `there is no shard ${shard}`);
    return window;
  }

  async #openWindow(spec: PlacedFile): Promise<FileWindow> {
    const file = await openFile(spec, this.#context);
    return new FileWindow(file, (count) => this.#progress?.add(count, file.name));
  }

  async #reopen(shard: number): Promise<void> {
    const spec = this.#specs[shard];
    if (!spec) throw new EdgeError('internal', `there is no shard ${shard}`);
    await this.#window(shard).file.close('keep');
    if (spec.kind === 'stream') throw new EdgeError('unsupported-model', 'this file cannot be loaded from a stream: give a Blob or a URL', { path: 'model' });
    const file = await openFile(spec, this.#context);
    // Bytes that come a second time are not progress.
    this.#windows[shard] = new FileWindow(file, () => {});
  }
}
