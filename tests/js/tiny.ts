// Makes a tiny model with random weights from a seed: a complete file that loads and answers like a real one, in kilobytes.

import { bytesOf, concat, gguf, i32, list, string, text, u32 } from './gguf.js';
import type { TensorInfo, Value } from './gguf.js';

const HIDDEN = 64;
const HEAD_DIM = 16;
const KV_HEADS = 2;
const FEED_FORWARD = 128;
const VOCAB = 288;
const LAYERS = 2;
const MERGES = ['h e', 'l l', 'he ll', 'hell o', 'Ġ w', 'o r', 'l d', 'Ġw or', 'Ġwor ld', 't h', 'Ġ th', 'Ġth e'];
const CONTROL = ['<|endoftext|>', '<|im_start|>', '<|im_end|>'];
const TEMPLATE = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
  + "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

const Q8_0 = 8;
const f32 = (value: number): Value => ({ type: 6, bytes: bytesOf(Float32Array.of(value)) });

/** The bytes of the file. Another seed is another model; `contextLength` is what it says it was trained for. */
export function tinyModel({ seed = 1, contextLength = 512 } = {}): Uint8Array {
  const random = randomFrom(seed);
  const tensors: TensorInfo[] = [];
  const data: Uint8Array[] = [];
  let offset = 0n;
  const add = (name: string, dims: number[], type: number, bytes: Uint8Array) => {
    const padding = (32 - (bytes.length % 32)) % 32;
    tensors.push({ name, dims: dims.map(BigInt), type, offset });
    data.push(bytes, new Uint8Array(padding));
    offset += BigInt(bytes.length + padding);
  };
  const matrix = (name: string, rows: number, columns: number) => add(`${name}.weight`, [columns, rows], Q8_0, blocks(random, rows * columns, columns));
  const vector = (name: string, length: number) => add(`${name}.weight`, [length], 0, bytesOf(Float32Array.from({ length }, () => 0.9 + 0.2 * random())));
  matrix('token_embd', VOCAB, HIDDEN);
  for (let layer = 0; layer < LAYERS; layer += 1) {
    const name = (part: string) => `blk.${layer}.${part}`;
    vector(name('attn_norm'), HIDDEN);
    matrix(name('attn_q'), HIDDEN, HIDDEN);
    for (const part of ['attn_k', 'attn_v']) matrix(name(part), KV_HEADS * HEAD_DIM, HIDDEN);
    matrix(name('attn_output'), HIDDEN, HIDDEN);
    vector(name('ffn_norm'), HIDDEN);
    for (const part of ['ffn_gate', 'ffn_up']) matrix(name(part), FEED_FORWARD, HIDDEN);
    matrix(name('ffn_down'), HIDDEN, FEED_FORWARD);
  }
  vector('output_norm', HIDDEN);
  return gguf({ fields: [...sizes(contextLength), ...tokenizer()], tensors, data: concat(data) });
}

/** Numbers from 0 to 1 (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Blocks of 32 signed bytes under a scale, a power of two such that outputs are about as large as inputs. */
function blocks(random: () => number, elements: number, columns: number): Uint8Array {
  const scale = columns > 64 ? 2 ** -10 : 2 ** -9;
  const half = Uint8Array.of(0, (15 + Math.log2(scale)) << 2);
  return concat(Array.from({ length: elements / 32 }, () => concat([half, Uint8Array.from({ length: 32 }, () => random() * 256)])));
}

function sizes(contextLength: number): [string, Value][] {
  const counts: Record<string, number> = {
    block_count: LAYERS, context_length: contextLength, embedding_length: HIDDEN, feed_forward_length: FEED_FORWARD, vocab_size: VOCAB,
    'attention.head_count': HIDDEN / HEAD_DIM, 'attention.head_count_kv': KV_HEADS, 'rope.dimension_count': HEAD_DIM,
  };
  return [
    ['general.architecture', text('llama')],
    ['general.name', text('tiny')],
    ...Object.entries(counts).map(([name, value]): [string, Value] => [`llama.${name}`, u32(value)]),
    ['llama.attention.layer_norm_rms_epsilon', f32(1e-5)],
    ['llama.rope.freq_base', f32(10_000)],
  ];
}

/** A byte-level vocabulary: one token for each byte, the merges, control tokens, unused ids. */
function tokenizer(): [string, Value][] {
  const tokens = [...byteSpellings(), ...MERGES.map((merge) => merge.replace(' ', '')), ...CONTROL];
  const control = tokens.length - CONTROL.length;
  const types = Array.from({ length: VOCAB }, (_, id) => (id < control ? 1 : id < tokens.length ? 3 : 5));
  while (tokens.length < VOCAB) tokens.push(`[unused${tokens.length}]`);
  return [
    ['tokenizer.ggml.model', text('gpt2')],
    ['tokenizer.ggml.pre', text('smollm')],
    ['tokenizer.ggml.tokens', list(8, tokens.map((token) => string(token)))],
    ['tokenizer.ggml.token_type', list(5, types.map((type) => i32(type).bytes))],
    ['tokenizer.ggml.merges', list(8, MERGES.map((merge) => string(merge)))],
    ['tokenizer.ggml.bos_token_id', u32(control)],
    ['tokenizer.ggml.eos_token_id', u32(control + 2)],
    ['tokenizer.ggml.add_bos_token', { type: 7, bytes: Uint8Array.of(0) }],
    ['tokenizer.chat_template', text(TEMPLATE)],
  ];
}

/** How byte-level vocabularies spell bytes: printable ones as themselves, the others from U+0100 on. */
function byteSpellings(): string[] {
  let others = 0;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte !== 0xad);
    return String.fromCodePoint(isPrintable ? byte : 0x100 + others++);
  });
}
