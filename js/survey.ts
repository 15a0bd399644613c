// Looks at a model without loading it: the headers of its files say what it needs, the store what of it is here already.

import { EdgeError } from './errors.js';
import type { EdgeErrorCode } from './errors.js';
import { probeGpu } from './gpu.js';
import { reasonOf } from './loading.js';
import { isLocked } from './locks.js';
import { openModel } from './model-files.js';
import type { Glance, LoadContext, ModelFiles } from './model-files.js';
import { isNode, node } from './platform.js';
import type { LoadOptions, PlacedFile, Survey } from './protocol.js';
import { whyNoRoom } from './quota.js';
import { hasTrapped, noteTrap } from './traps.js';
import { lockOf } from './turns.js';
import type { BackendName, Plan } from './types.js';
import { keyOf } from './url-file.js';

/** What the WASM module tells of a model. */
interface Outlook extends Pick<Plan, 'backend' | 'quantization' | 'contextTokens'> {
  memory: Plan['memoryBytes'];
  rejected: { backend: BackendName; reason: string }[];
  /** Why it does not fit. */
  fault: { code: EdgeErrorCode; message: string } | null;
  /** The sizes that the files must have at least. */
  fileBytes: number[];
}

/** Headers are read in small pieces, one after the other. */
const GLANCE: Glance = { partBytes: 1 << 20, parallel: 1 };

/** Looks at a model. */
export async function surveyModel(options: LoadOptions, context: LoadContext): Promise<Survey> {
  const { files, specs, store } = await openModel(options, context, GLANCE);
  try {
    const { memory, rejected, fault: misfit, fileBytes, ...outlook } = await outlookOf(options, files, context);
    const downloadBytes = files.missingBytes ?? fileBytes.reduce((sum, bytes) => sum + bytes, 0);
    const noRoom = store && downloadBytes > 0 ? await whyNoRoom(store.place, downloadBytes) : null;
    const fault = misfit ?? noRoom;
    const plan: Plan = {
      ...outlook,
      downloadBytes,
      memoryBytes: memory,
      fits: fault === null,
      reason: fault?.message ?? reasonOf(options, outlook, rejected),
      ...(fault ? { code: fault.code } : {}),
    };
    return { plan, state: downloadBytes === 0 ? 'stored' : (await isUnderWay(specs)) ? 'downloading' : 'missing' };
  } finally {
    await files.abandon(null);
  }
}

async function outlookOf(options: LoadOptions, files: ModelFiles, context: LoadContext): Promise<Outlook> {
  const probe = options.backend === 'cpu' ? { gpu: null, reason: '' } : await probeGpu(options.powerPreference, options.backend === 'webgpu');
  if (!probe.gpu && options.backend === 'webgpu') throw new EdgeError('not-found', `there is no usable GPU: ${probe.reason}`, { path: 'backend' });
  const rejected = !probe.gpu && options.backend === 'auto' ? [{ backend: 'webgpu', reason: probe.reason }] : [];
  const loader = new context.module.glue.Loader(JSON.stringify({ backend: options.backend, lengths: files.lengths, rejected, engine: options.engine }));
  try {
    for (;;) {
      context.signal.throwIfAborted();
      const need = JSON.parse(loader.need()) as { need: string; shard: number; bytes: number };
      if (need.need !== 'prefix') break;
      loader.supply(await files.prefix(need.shard, need.bytes));
    }
    const machine = { gpu: probe.gpu?.device ?? null, memoryBytes: memoryBytes() };
    return JSON.parse(loader.plan(JSON.stringify(machine))) as Outlook;
  } catch (error) {
    noteTrap(error);
    throw error;
  } finally {
    probe.gpu?.destroy();
    if (!hasTrapped()) loader.free();
  }
}

/** Whether a tab is downloading one of the files. */
async function isUnderWay(specs: PlacedFile[]): Promise<boolean> {
  const keys = specs.flatMap((spec) => (spec.kind === 'url' ? [keyOf(spec)] : []));
  return (await Promise.all(keys.map((key) => isLocked(lockOf(key))))).includes(true);
}

/** Bytes of this machine's memory; null where that is not told. Browsers tell no more than 8 GiB, so that these may be more. */
function memoryBytes(): number | null {
  if (isNode()) return node().os.totalmem();
  const gigabytes = (navigator as Navigator & { deviceMemory?: number }).deviceMemory;
  return gigabytes !== undefined && gigabytes < 8 ? gigabytes * 2 ** 30 : null;
}
