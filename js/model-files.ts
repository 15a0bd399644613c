// The files of one model as a load reads them: opened together, read in order, counted for the caller.

import { openStore } from './cache.js';
import { EdgeError, isErrorData } from './errors.js';
import { openFile } from './files.js';
import type { FileContext, FileStream } from './files.js';
import type { HubModel } from './model-names.js';
import type { WasmModule } from './modules.js';
import { placeModel } from './placing.js';
import { TransferProgress } from './progress.js';
import type { LoadOptions, PlacedFile } from './protocol.js';
import { whyNoRoom } from './quota.js';
import type { Store } from './store.js';
import type { Progress } from './types.js';
import { keyOf } from './url-file.js';
import { FileWindow } from './window.js';

/** What a load may use of its surroundings. */
export interface LoadContext {
  /** The module, started. */
  module: WasmModule;
  signal: AbortSignal;
  fetch: typeof fetch;
  openStream(resource: number): ReadableStream<Uint8Array>;
  /** Asks the hub which files a model has. */
  findOnHub(model: HubModel): Promise<PlacedFile[]>;
  onProgress(progress: Progress): void;
}

/** A model whose files are open. */
export interface OpenModel {
  files: ModelFiles;
  specs: PlacedFile[];
  store: Store | null;
}

/** What is different when only the headers are wanted. */
export type Glance = Pick<FileContext, 'partBytes' | 'parallel'>;

/** Finds and opens a model's files; with `glance`, only to look at their headers. */
export async function openModel(options: LoadOptions, context: LoadContext, glance: Glance | null = null): Promise<OpenModel> {
  const store = await openStore(options.cache);
  const shared = { ...context, headers: options.headers, store };
  const { name, files: specs } = await placeModel(options.files, shared);
  const makeHasher = () => new context.module.glue.Sha256();
  const fileContext: FileContext = { ...shared, model: { name, files: specs.length }, isGlance: glance !== null, makeHasher, ...glance };
  const files = new ModelFiles(specs, fileContext, glance ? () => {} : context.onProgress);
  try {
    await files.open();
  } catch (error) {
    await files.abandon(error);
    throw error;
  }
  return { files, specs, store };
}

/**
 * Reads a model that `open` opens. When the whole is not what it should be and a part of it is from an earlier download,
 * that part may be the bad one: it is forgotten, and everything is read once more.
 */
export async function readModel<Opened extends { files: ModelFiles }, T>(open: () => Promise<Opened>, work: (opened: Opened) => Promise<T>): Promise<T> {
  for (let isAgain = false; ; isAgain = true) {
    const opened = await open();
    try {
      return await work(opened);
    } catch (error) {
      await opened.files.abandon(error);
      if (isAgain || !opened.files.isResumed || !(isErrorData(error) && error.code === 'integrity')) throw error;
    }
  }
}

/** Beginnings up to this size are kept until the model is planned, since small tensors may be read before the others. */
const KEPT_BYTES = 64 << 20;

/** A model's files. */
export class ModelFiles {
  readonly #specs: PlacedFile[];
  readonly #context: FileContext;
  readonly #report: (progress: Progress) => void;
  #windows: (FileWindow | undefined)[] = [];
  #progress: TransferProgress | null = null;
  #keepBytes = KEPT_BYTES;

  constructor(specs: PlacedFile[], context: FileContext, report: (progress: Progress) => void) {
    this.#specs = specs;
    this.#context = context;
    this.#report = report;
  }

  /** The files' sizes in bytes. */
  get lengths(): (number | null)[] {
    return this.#files.map((file) => file.size);
  }

  /** Bytes that must still be transferred; null while a file's size is unknown. */
  get missingBytes(): number | null {
    return sumOf(this.#files.map(({ size, had, origin }) => (origin === 'caller' ? 0 : size === null ? null : size - had)));
  }

  /** Where the bytes come from: the network if any of them does. */
  get origin(): FileStream['origin'] {
    const origins = this.#files.map((file) => file.origin);
    return origins.includes('network') ? 'network' : (origins[0] ?? 'caller');
  }

  /** Whether a part of what comes from the network was there before. */
  get isResumed(): boolean {
    return this.#files.some(({ origin, had }) => origin === 'network' && had > 0);
  }

  /** Why a file could not be stored; null when each could. */
  get storeFault(): string | null {
    const fault = this.#files.map((file) => file.storeFault ?? null).find((found) => found !== null) ?? null;
    return fault === null ? null : fault instanceof Error ? fault.message : String(fault);
  }

  /** Opens every file. Fails with 'quota' when what is missing does not fit where it shall be stored. */
  async open(): Promise<void> {
    const onWait = (file: string, loaded: number, total: number | null) => {
      this.#report({ phase: 'download', loaded, total: this.#specs.length === 1 ? total : null, file });
    };
    // In an order that is the same for every tab, so that no two wait for each other.
    const order = [...this.#specs.keys()].sort((a, b) => (sortKey(this.#specs[a]) < sortKey(this.#specs[b]) ? -1 : 1));
    for (const index of order) await this.#openWindow(index, { ...this.#context, onWait });
    const missing = this.missingBytes ?? 0;
    const { store, isGlance } = this.#context;
    const noRoom = store && !isGlance && missing > 0 ? await whyNoRoom(store.place, missing) : null;
    if (noRoom) throw noRoom;
    this.#progress = new TransferProgress(this.origin === 'network' ? 'download' : 'upload', sumOf(this.lengths), this.#report);
    for (const { had } of this.#files) this.#progress.had(had);
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
    for (const index of this.#specs.keys()) await this.#window(index).drain();
    this.#progress?.finish(this.#files.at(-1)?.name ?? '');
  }

  /** Lets the files go before their end; a download that turned out to be no good model is not continued later. */
  async abandon(error: unknown): Promise<void> {
    const isUseless = isErrorData(error) && ['malformed-file', 'integrity'].includes(error.code);
    for (const file of this.#files) await file.close(isUseless ? 'discard' : 'keep').catch(() => {});
  }

  get #files(): FileStream[] {
    return this.#windows.flatMap((window) => (window ? [window.file] : []));
  }

  #window(shard: number): FileWindow {
    const window = this.#windows[shard];
    if (!window) throw new EdgeError('internal', `there is no shard ${shard}`);
    return window;
  }

  async #openWindow(index: number, context: FileContext): Promise<void> {
    const spec = this.#specs[index];
    if (!spec) throw new EdgeError('internal', `there is no shard ${index}`);
    const file = await openFile(spec, context);
    this.#windows[index] = new FileWindow(file, (count) => this.#progress?.add(count, file.name));
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

function sortKey(spec: PlacedFile | undefined): string {
  return spec?.kind === 'url' ? keyOf(spec) : '';
}

/** The sum, null when a part of it is unknown. */
function sumOf(parts: (number | null)[]): number | null {
  return parts.reduce<number | null>((sum, part) => (sum === null || part === null ? null : sum + part), 0);
}
