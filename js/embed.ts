// `edge.embed` for its callers: checks what they pass and follows the call. Loaded at its first use.

import type { Connection } from './connection.js';
import { EdgeError } from './errors.js';
import { guarded } from './opening.js';
import { checkNames, checkSignal, checkType, checkWhole, wellFormed, wrong } from './options.js';
import type { NamesOf } from './options.js';
import type { EmbedRequest } from './protocol.js';
import type { EmbedInput, EmbedOptions, Pooling } from './types.js';

const NAMES: NamesOf<EmbedOptions> = { pooling: true, normalize: true, dimensions: true, truncate: true, signal: true, onProgress: true };
const POOLINGS: readonly Pooling[] = ['none', 'mean', 'cls', 'last'];

/** Embeds over the line that `connect` gives. */
export async function embed(connect: () => Promise<Connection>, input: EmbedInput, options: EmbedOptions): Promise<Float32Array[]> {
  const request = embedRequest(input, options);
  const { signal } = options;
  signal?.throwIfAborted();
  const connection = await connect();
  signal?.throwIfAborted();
  if (request.inputs.length === 0) return [];
  const call = connection.call('embed', request, { onProgress: guarded('onProgress', options.onProgress) });
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      reject(signal?.reason as Error);
      call.cancel();
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    call.answer.then((steps) => resolve(steps.map(({ buffer }) => new Float32Array(buffer).slice(2))), reject).finally(() => signal?.removeEventListener('abort', onAbort));
  });
}

function embedRequest(input: EmbedInput, options: EmbedOptions): EmbedRequest {
  checkNames(options, NAMES);
  checkSignal(options.signal);
  checkType('onProgress', options.onProgress, 'function');
  checkWhole('dimensions', options.dimensions, 1, 2 ** 31);
  const { pooling, dimensions, normalize = true, truncate = false } = options;
  if (pooling !== undefined && !POOLINGS.includes(pooling)) throw wrong('pooling', POOLINGS.join(', '), pooling);
  for (const [name, value] of Object.entries({ normalize, truncate })) if (typeof value !== 'boolean') throw wrong(name, 'true or false', value);
  return {
    inputs: inputsOf(input),
    ...(pooling === undefined ? {} : { pooling }),
    ...(dimensions === undefined ? {} : { dimensions }),
    normalize,
    truncate,
  };
}

function inputsOf(input: EmbedInput): EmbedRequest['inputs'] {
  const list: readonly unknown[] = typeof input === 'string' || input instanceof Uint32Array ? [input] : input;
  if (!Array.isArray(list)) throw wrong('input', 'a string or a list of strings', input);
  return list.map((one: unknown, index) => {
    if (typeof one === 'string') return wellFormed(one);
    if (one instanceof Uint32Array) return Array.from(one);
    throw new EdgeError('invalid-argument', `input[${index}]: expected a string or a Uint32Array of token ids, found ${typeof one}`, { path: `input[${index}]` });
  });
}
