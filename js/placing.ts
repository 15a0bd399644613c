// Finds the files that a model's name stands for: in the registry, on the hub, or among what is stored already.

import { EdgeError } from './errors.js';
import { hubName, storedName } from './model-names.js';
import type { HubModel } from './model-names.js';
import type { WasmModule } from './modules.js';
import { cacheFolder, isNode, node } from './platform.js';
import type { FileSpec, PlacedFile } from './protocol.js';
import { Patience } from './retry.js';
import type { Store } from './store.js';

/** What finding them may use. */
export interface PlacingContext {
  module: WasmModule;
  signal: AbortSignal;
  store: Store | null;
  /** Asks the hub. */
  findOnHub(model: HubModel): Promise<PlacedFile[]>;
}

/** A model's files, and its name for people. */
export interface PlacedModel {
  name: string;
  files: PlacedFile[];
}

/** Looks up what only a name says. */
export async function placeModel(specs: FileSpec[], context: PlacingContext): Promise<PlacedModel> {
  const files: PlacedFile[] = [];
  for (const spec of specs) {
    if (spec.kind === 'hub') files.push(...(await fromHub(spec, context)));
    else if (spec.kind === 'name') files.push(await fromRegistry(spec.name, context.module));
    else files.push(spec);
  }
  const urls = files.flatMap((file) => (file.kind === 'url' ? file.urls.slice(0, 1) : []));
  const twice = urls.find((url, index) => urls.indexOf(url) !== index);
  if (twice !== undefined) throw new EdgeError('invalid-argument', `expected each shard once, found ${twice} twice`, { path: 'model' });
  const [first] = specs;
  return { name: first ? storedName(first) : '', files };
}

/** What is stored of a hub model is taken as it is: the hub need not be asked, nor reached. */
async function fromHub(spec: Extract<FileSpec, { kind: 'hub' }>, context: PlacingContext): Promise<PlacedFile[]> {
  const stored = (await context.store?.list().catch(() => [])) ?? [];
  const files = stored.filter(({ header, isComplete }) => isComplete && header.model === hubName(spec));
  if (files.length === 0 || files.length !== files[0]?.header.files) return askHub(spec, context);
  return files.map(({ header }) => ({ kind: 'url' as const, urls: [header.url], name: header.name })).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Failures that are borne, and the wait after the first. */
const RETRIES = { retries: 3, retryDelayMs: 500 };

async function askHub({ owner, repo, quant }: HubModel, { findOnHub, signal }: PlacingContext): Promise<PlacedFile[]> {
  const patience = new Patience({ ...RETRIES, signal });
  for (;;) {
    try {
      return await findOnHub({ owner, repo, quant });
    } catch (error) {
      await patience.after(error);
    }
  }
}

interface RegistryRow {
  name: string;
  file: string;
  bytes: number;
  sha256: string;
  sources: { url?: string }[];
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
