// Opens a line to an engine's host and makes its first call: a load, or a look at a model.

import { Connection, whyNoWorker } from './connection.js';
import { EdgeError, toEdgeError } from './errors.js';
import { chooseModule } from './modules.js';
import { loadOptions } from './options.js';
import type { Calls, LoadOptions } from './protocol.js';
import type { EdgeOptions } from './types.js';

/** The calls that need no model. */
export type FirstCall = { [Name in keyof Calls]: Calls[Name]['request'] extends LoadOptions ? Name : never }[keyof Calls];

/** Opens a line and calls; the line is closed when the call fails, with an `EdgeError` or the signal's reason. */
export async function openLine<Name extends FirstCall>(name: Name, options: EdgeOptions): Promise<{ connection: Connection; answer: Calls[Name]['answer'] }> {
  const { signal } = options;
  signal?.throwIfAborted();
  const choice = await chooseModule(options, whyNoWorker(options.worker));
  signal?.throwIfAborted();
  const connection = new Connection(options.worker, options.fetch ?? null, choice);
  const stop = () => { void connection.close(closed()); };
  signal?.addEventListener('abort', stop, { once: true });
  try {
    const request: Calls[FirstCall]['request'] = loadOptions(options, (stream) => connection.resources.keep(stream), connection.choice);
    const answer = await connection.call(name, request, { onProgress: guarded('onProgress', options.onProgress) }).answer;
    return { connection, answer };
  } catch (error) {
    signal?.throwIfAborted();
    const failure = toEdgeError(error);
    await connection.close(failure);
    throw failure;
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}

/** A call over a line of its own. */
export async function callOnce<Name extends FirstCall>(name: Name, options: EdgeOptions): Promise<Calls[Name]['answer']> {
  const { connection, answer } = await openLine(name, options);
  await connection.close(closed());
  return answer;
}

/** A callback whose faults stay its own: a load or an answer does not fail because a progress bar did. */
export function guarded<News>(name: string, callback: ((news: News) => void) | undefined): (news: News) => void {
  let hasFailed = false;
  return (news) => {
    try {
      callback?.(news);
    } catch (error) {
      if (!hasFailed) console.error(`${name} failed:`, error);
      hasFailed = true;
    }
  };
}

/** What a call on a closed engine fails with. */
export function closed(): EdgeError {
  return new EdgeError('closed', 'the engine is closed');
}
