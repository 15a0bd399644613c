// OpenAI's embeddings over `edge.embed`. It knows no HTTP.

import type { HanzoEdge } from './edge.js';
import { checkFields, wrong } from './openai-body.js';
import type { EmbedOptions } from './types.js';

/** OpenAI's answer; a vector is base64 of its floats where that was asked for. */
export interface EmbeddingList {
  object: 'list';
  data: { object: 'embedding'; index: number; embedding: number[] | string }[];
  model: string;
  usage: { prompt_tokens: number; total_tokens: number };
}

/** Fields that are options of `embed`, under the same names. */
const OPTIONS = ['dimensions', 'pooling', 'normalize', 'truncate'] as const;

/** Answers the body of an embeddings request. */
export async function createEmbeddings(engine: Pick<HanzoEdge, 'embed' | 'diagnostics'>, body: object, signal: AbortSignal | null): Promise<EmbeddingList> {
  checkFields(body, ['input', 'encoding_format', ...OPTIONS]);
  const { input, encoding_format: format, model, ...rest } = body as Readonly<Record<string, unknown>>;
  if (!['float', 'base64'].includes((format ?? 'float') as string)) throw wrong('encoding_format', "'float' or 'base64'", format);
  if (typeof (model ?? '') !== 'string') throw wrong('model', 'a string', model);
  let tokens = 0;
  const options: EmbedOptions = { onProgress: ({ total }) => { tokens = total ?? 0; }, ...(signal ? { signal } : {}) };
  for (const name of OPTIONS) Object.assign(options, rest[name] === undefined || rest[name] === null ? {} : { [name]: rest[name] });
  const vectors = await engine.embed(inputsOf(input), options);
  const encode = format === 'base64' ? toBase64 : (vector: Float32Array) => Array.from(vector);
  return {
    object: 'list',
    data: vectors.map((vector, index) => ({ object: 'embedding', index, embedding: encode(vector) })),
    model: (model as string | undefined) ?? engine.diagnostics.model,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  };
}

/** A text, token ids, or a list of either. */
function inputsOf(input: unknown): (string | Uint32Array)[] {
  const isIds = Array.isArray(input) && typeof input[0] === 'number';
  const list: unknown[] = Array.isArray(input) && !isIds ? input : [input];
  if (list.length === 0 || input === undefined || input === null) throw wrong('input', 'a text, token ids, or a list of at least one of them', input);
  return list.map((one, index) => {
    if (typeof one === 'string') return one;
    if (Array.isArray(one) && one.every((id) => Number.isInteger(id) && id >= 0 && id <= 0xffff_ffff)) return Uint32Array.from(one as number[]);
    throw wrong(list.length === 1 && !Array.isArray(input) ? 'input' : `input[${index}]`, 'a text or a list of token ids', one);
  });
}

function toBase64({ buffer, byteOffset, byteLength }: Float32Array): string {
  let binary = '';
  for (const byte of new Uint8Array(buffer, byteOffset, byteLength)) binary += String.fromCharCode(byte);
  return btoa(binary);
}
