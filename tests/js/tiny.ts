// A tiny model of the llama architecture with random weights from a fixed seed: a complete file that loads and answers
// like a real one, in kilobytes. Its answers are nonsense, and the same everywhere.

import { bytesOf, concat, gguf, list, string, text, u32 } from './gguf.js';
import type { TensorInfo, Value } from './gguf.js';

const HIDDEN = 64;
const HEADS = 4;
const HEAD = 16;
const KEY_VALUE = 2 * HEAD;
const FEED_FORWARD = 128;
const LAYERS = 2;
const VOCABULARY = 288;

const MERGES = ['h e', 'l l', 'he ll', 'hell o', 'Ġ w', 'o r', 'l d', 'Ġw or', 'Ġwor ld'];
const CONTROL = ['<|endoftext|>', '<|im_start|>', '<|im_end|>'];
const TEMPLATE = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/** The id that ends a turn. */
export const END_ID = 256 + MERGES.length + 2;

/** The bytes of the file, which says that it was trained for `contextLength` tokens. Equal seeds give equal files. */
export function tinyModel(seed = 1, contextLength = 512): Uint8Array {
  const random = splitmix(seed);
  const tensors: TensorInfo[] = [];
  const parts: Uint8Array[] = [];
  let offset = 0n;
  const add = (name: string, dims: number[], values: Float32Array) => {
    tensors.push({ name: `${name}.weight`, dims: dims.map(BigInt), type: 0, offset });
    parts.push(bytesOf(values));
    offset += BigInt(values.byteLength);
  };
  // Uniform in +-sqrt(3 / columns), so that outputs are as large as inputs.
  const matrix = (name: string, rows: number, columns: number) => add(name, [columns, rows], Float32Array.from({ length: rows * columns }, () => random() * Math.sqrt(3 / columns)));
  const vector = (name: string, length: number) => add(name, [length], Float32Array.from({ length }, () => 1 + 0.1 * random()));
  matrix('token_embd', VOCABULARY, HIDDEN);
  for (let layer = 0; layer < LAYERS; layer += 1) {
    const part = (name: string) => `blk.${layer}.${name}`;
    vector(part('attn_norm'), HIDDEN);
    matrix(part('attn_q'), HEADS * HEAD, HIDDEN);
    matrix(part('attn_k'), KEY_VALUE, HIDDEN);
    matrix(part('attn_v'), KEY_VALUE, HIDDEN);
    matrix(part('attn_output'), HIDDEN, HEADS * HEAD);
    vector(part('ffn_norm'), HIDDEN);
    matrix(part('ffn_gate'), FEED_FORWARD, HIDDEN);
    matrix(part('ffn_up'), FEED_FORWARD, HIDDEN);
    matrix(part('ffn_down'), HIDDEN, FEED_FORWARD);
  }
  vector('output_norm', HIDDEN);
  return gguf({ fields: [...shape(contextLength), ...tokenizer()], tensors, data: concat(parts) });
}

function shape(contextLength: number): [string, Value][] {
  const f32 = (value: number): Value => ({ type: 6, bytes: bytesOf(Float32Array.of(value)) });
  return [
    ['general.architecture', text('llama')],
    ['general.name', text('tiny')],
    ['llama.block_count', u32(LAYERS)],
    ['llama.context_length', u32(contextLength)],
    ['llama.embedding_length', u32(HIDDEN)],
    ['llama.feed_forward_length', u32(FEED_FORWARD)],
    ['llama.attention.head_count', u32(HEADS)],
    ['llama.attention.head_count_kv', u32(KEY_VALUE / HEAD)],
    ['llama.attention.layer_norm_rms_epsilon', f32(1e-5)],
    ['llama.rope.dimension_count', u32(HEAD)],
    ['llama.rope.freq_base', f32(10_000)],
    ['llama.vocab_size', u32(VOCABULARY)],
  ];
}

/** A byte-level vocabulary: one token for each byte, the merges, control tokens, unused ids. */
function tokenizer(): [string, Value][] {
  const known = [...byteSpellings(), ...MERGES.map((merge) => merge.replace(' ', ''))];
  const control = (index: number) => u32(known.length + index);
  const unused = Array.from({ length: VOCABULARY - known.length - CONTROL.length }, (_, i) => `[unused${i}]`);
  const types = [...known.map(() => 1), ...CONTROL.map(() => 3), ...unused.map(() => 5)];
  return [
    ['tokenizer.ggml.model', text('gpt2')],
    ['tokenizer.ggml.pre', text('smollm')],
    ['tokenizer.ggml.tokens', list(8, [...known, ...CONTROL, ...unused].map((token) => string(token)))],
    ['tokenizer.ggml.token_type', list(5, types.map((type) => bytesOf(Int32Array.of(type))))],
    ['tokenizer.ggml.merges', list(8, MERGES.map((merge) => string(merge)))],
    ['tokenizer.ggml.bos_token_id', control(0)],
    ['tokenizer.ggml.eos_token_id', control(2)],
    ['tokenizer.chat_template', text(TEMPLATE)],
  ];
}

/** How byte-level vocabularies spell the bytes: printable ones as themselves, the others from U+0100 on. */
function byteSpellings(): string[] {
  const isPrintable = (byte: number) => (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  let others = 0;
  return Array.from({ length: 256 }, (_, byte) => {
    if (isPrintable(byte)) return String.fromCodePoint(byte);
    others += 1;
    return String.fromCodePoint(0x100 + others - 1);
  });
}

/** Numbers in -1..1 (splitmix32). */
export function splitmix(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 31 - 1;
  };
}
