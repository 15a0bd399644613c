// Loads a model: finds its files, opens a device, and carries bytes from the files to the WASM module as it asks for them.

import { EdgeError } from './errors.js';
import { adapterName, probeGpu } from './gpu.js';
import type { Gpu } from './gpu.js';
import type { Engine } from './hanzo-edge.js';
import { openModel, readModel } from './model-files.js';
import type { LoadContext, ModelFiles } from './model-files.js';
import type { LoadOptions, LoadedFacts } from './protocol.js';
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

/** A loaded model with its device. */
export interface Loaded {
  engine: Engine;
  gpu: Gpu | null;
  facts: Omit<LoadedFacts, 'wasmReason'>;
}

/** Loads a model. */
export async function loadModel(options: LoadOptions, context: LoadContext): Promise<Loaded> {
  return readModel(() => openModel(options, context), async ({ files, store }) => {
    const { engine, gpu, rejected } = await load(options, files, context);
    const facts: EngineFacts = JSON.parse(engine.diagnostics()) as EngineFacts;
    // The browser tells pages of an adapter what it hides from WASM.
    const adapter = gpu && facts.backend === 'webgpu' ? { adapter: gpu.adapter, device: adapterName(gpu.adapter) } : {};
    if (facts.backend !== 'webgpu') gpu?.destroy();
    const allRejected = mergeRejected(rejected, facts.rejected);
    const fault = files.storeFault;
    const cache = {
      kind: files.origin === 'caller' ? 'none' : (store?.kind ?? 'none'),
      hit: files.origin === 'cache',
      ...(fault === null ? {} : { fault }),
    };
    return { engine, gpu: facts.backend === 'webgpu' ? gpu : null, facts: { ...facts, reason: reasonOf(options, facts, allRejected), rejected: allRejected, ...adapter, wasmModule: `${context.module.name}.wasm`, cache } };
  });
}

type Rejected = LoadedFacts['rejected'];

function mergeRejected(ours: Rejected, theirs: Rejected): Rejected {
  return [...ours, ...theirs.filter((row) => !ours.some((known) => known.backend === row.backend))];
}

/** Why a backend is the one. */
export function reasonOf(options: LoadOptions, facts: { backend: BackendName }, rejected: Rejected): string {
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
