// What a user's strict TypeScript does with the package; compiled only.

import { EDGE_ERROR_CODES, EdgeError, HanzoEdge } from '@hanzo/edge';
import type { ChatMessage, Diagnostics, EdgeErrorCode, EdgeOptions, EdgeSession, GenerateResult, ModelSource, Progress } from '@hanzo/edge';

const source: ModelSource = { url: 'https://example.com/model.gguf', sha256: '0'.repeat(64) };
const options: EdgeOptions = {
  model: source,
  backend: 'auto',
  cache: 'auto',
  worker: new URL('https://example.com/worker.js'),
  wasmUrl: 'https://example.com/wasm/',
  onProgress: ({ phase, loaded, total }: Progress) => void `${phase} ${loaded} ${total ?? 'unknown'}`,
  fetch: (input, init) => fetch(input, init),
  headers: { authorization: 'Bearer x' },
  signal: new AbortController().signal,
};

/** One answer, by pieces. */
export async function answer(question: string): Promise<GenerateResult> {
  const edge: HanzoEdge = await HanzoEdge.init(options);
  const messages: ChatMessage[] = [{ role: 'user', content: question }];
  const stream = edge.chat(messages, { temperature: 0.7, maxTokens: 64, stop: ['\n'] });
  for await (const piece of stream) piece.trim();
  const diagnostics: Diagnostics = edge.diagnostics;
  diagnostics.rejected.map(({ backend, reason }) => `${backend}: ${reason}`);
  const session: EdgeSession = await edge.session({ initialPrompts: messages, overflow: 'drop-oldest' });
  const text: string = await session.prompt('and why?');
  const ids: Uint32Array = await edge.tokenize(text);
  await edge.detokenize([...ids]);
  await edge.close();
  return stream.result;
}

/** The code of a failure. */
export function codeOf(error: unknown): EdgeErrorCode | null {
  if (!(error instanceof EdgeError)) return null;
  const known: readonly EdgeErrorCode[] = EDGE_ERROR_CODES;
  return known.includes(error.code) ? error.code : null;
}

// @ts-expect-error: a backend that does not exist
export const wrongBackend: EdgeOptions = { backend: 'tpu' };
// @ts-expect-error: an option that does not exist
export const wrongOption: EdgeOptions = { modle: 'x' };
// @ts-expect-error: the constructor is not for users
export const made = () => new HanzoEdge();
