// Downloads a model into the store without loading it.

import { EdgeError } from './errors.js';
import { openModel, readModel } from './model-files.js';
import type { LoadContext } from './model-files.js';
import { isWebWorker } from './platform.js';
import type { LoadOptions } from './protocol.js';

/** Enough of a file to see that it is none of what servers send in a model's place. */
const SNIFF_BYTES = 64;

/** Stores a model. Files that are the caller's own or stored already take nothing. */
export async function storeModel(options: LoadOptions, context: LoadContext): Promise<void> {
  const fault = await readModel(() => openModel(options, context), async ({ files, store }) => {
    // A worker's memory goes with it.
    const isKept = store !== null && !(store.kind === 'memory' && isWebWorker());
    if (files.origin !== 'caller' && !isKept) throw new EdgeError('quota', `there is no place to keep a model (cache: '${options.cache}')`, { path: 'cache' });
    for (const shard of files.lengths.keys()) await files.prefix(shard, SNIFF_BYTES);
    files.headersAreDone();
    await files.drain();
    return files.storeFault;
  });
  if (fault !== null) throw new EdgeError('quota', `the model could not be stored: ${fault}`, { path: 'cache' });
}
