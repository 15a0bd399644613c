// Damaged and hostile model files, each of which must give one clear error.

import { bytesOf, concat, gguf, i32, list, string, text, u32 } from './gguf.js';
import type { Value } from './gguf.js';

/** A file and what is wrong with it. */
export interface HostileFile {
  name: string;
  bytes: Uint8Array;
}

const TOKENS = Array.from({ length: 16 }, (_, i) => `t${i}`);

/** A file of the llama architecture with a vocabulary in which one thing is replaced. */
function vocabulary(replaced: [string, Value][]): Uint8Array {
  const f32 = (value: number) => bytesOf(Float32Array.of(value));
  const fields = new Map<string, Value>([
    ['general.architecture', text('llama')],
    ['llama.context_length', u32(64)],
    ['llama.embedding_length', u32(32)],
    ['llama.block_count', u32(1)],
    ['llama.feed_forward_length', u32(32)],
    ['llama.attention.head_count', u32(1)],
    ['llama.attention.layer_norm_rms_epsilon', { type: 6, bytes: f32(1e-5) }],
    ['tokenizer.ggml.model', text('llama')],
    ['tokenizer.ggml.tokens', list(8, TOKENS.map((token) => string(token)))],
    ['tokenizer.ggml.scores', list(6, TOKENS.map(() => f32(0)))],
    ['tokenizer.ggml.token_type', list(5, TOKENS.map(() => bytesOf(Int32Array.of(1))))],
  ]);
  for (const [name, value] of replaced) fields.set(name, value);
  return gguf({ fields: [...fields] });
}

function tensor(dims: bigint[], { type = 0, name = 't', offset = 0n, data = new Uint8Array(64) } = {}): Uint8Array {
  return gguf({ fields: [['general.architecture', text('llama')]], tensors: [{ name, dims, type, offset }], data });
}

/** All the files. `good` is the beginning of a sound model file, to be cut. */
export function hostileFiles(good: Uint8Array): HostileFile[] {
  const files: [string, Uint8Array][] = [
    ['no bytes', new Uint8Array()],
    ['three bytes', new TextEncoder().encode('GGU')],
    ['another magic', concat([new TextEncoder().encode('GGML'), new Uint8Array(60)])],
    ['a big-endian version', gguf({ version: 0x03000000 })],
    ['an unknown version', gguf({ version: 99 })],
    ['more tensors than bytes', gguf({ counts: { tensors: 2n ** 63n } })],
    ['more fields than bytes', gguf({ counts: { fields: 2n ** 40n } })],
    ...[0, 3, 2 ** 30].map((value): [string, Uint8Array] => [`alignment ${value}`, gguf({ fields: [['general.alignment', u32(value)]] })]),
    ['alignment as i32', gguf({ fields: [['general.alignment', i32(32)]] })],
    ['an unknown value type', gguf({ fields: [['x', { type: 77, bytes: new Uint8Array(8) }]] })],
    ['a string longer than the file', gguf({ fields: [['x', { type: 8, bytes: bytesOf(BigUint64Array.of(2n ** 60n)) }]] })],
    ['an array longer than the file', gguf({ fields: [['x', list(4, [], 2n ** 61n)]] })],
    ['arrays nested ten thousand deep', gguf({ fields: [['x', { type: 9, bytes: nested(10_000) }]] })],
    ['a shape that wraps to 0', tensor([2n ** 32n, 2n ** 32n])],
    ['a shape that wraps to 4', tensor([2n, 2n ** 63n + 2n])],
    ['a shape of 2^42 rows', tensor([1152n, 2n ** 42n + 1n])],
    ['an empty axis', tensor([0n])],
    ['a tensor of 8 GiB', tensor([2n ** 31n])],
    ['five axes', tensor([1n, 1n, 1n, 1n, 1n])],
    ['an unknown tensor type', tensor([4n], { type: 9999 })],
    ['a tensor beyond the end', tensor([4n], { offset: 2n ** 40n })],
    ['an offset that wraps', tensor([4n], { offset: 2n ** 64n - 32n })],
    ['an unaligned offset', tensor([4n], { offset: 7n })],
    ['no tensors', vocabulary([])],
    ['an unknown architecture', vocabulary([['general.architecture', text('no-such-model')]])],
    ['an architecture that is a number', vocabulary([['general.architecture', u32(7)]])],
    ['scores as u8', vocabulary([['tokenizer.ggml.scores', list(0, TOKENS.map(() => Uint8Array.of(1)))]])],
    ['too few scores', vocabulary([['tokenizer.ggml.scores', list(6, [new Uint8Array(4)])]])],
    ['token types as strings', vocabulary([['tokenizer.ggml.token_type', list(8, TOKENS.map(() => string('x')))]])],
    ['tokens as numbers', vocabulary([['tokenizer.ggml.tokens', list(4, TOKENS.map(() => new Uint8Array(4)))]])],
    ['a bos id of four billion', vocabulary([['tokenizer.ggml.bos_token_id', u32(4_000_000_000)]])],
    ['a negative bos id', vocabulary([['tokenizer.ggml.bos_token_id', i32(-1)]])],
    ['a token that is no UTF-8', vocabulary([['tokenizer.ggml.tokens', list(8, TOKENS.map((token, i) => string(i === 3 ? Uint8Array.of(0xff, 0xfe) : token)))]])],
    ['merges without a space', vocabulary([['tokenizer.ggml.model', text('gpt2')], ['tokenizer.ggml.merges', list(8, [string('ab')])]])],
    ['zero heads', vocabulary([['llama.attention.head_count', u32(0)]])],
    ['a huge layer count', vocabulary([['llama.block_count', u32(0xffff_ffff)]])],
    ['a Git LFS pointer', new TextEncoder().encode('version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 98362432\n')],
    ['a web page', new TextEncoder().encode('<!doctype html><html><title>Not found</title></html>')],
    ...[4, 24, 1000, 100_000, good.length].map((length): [string, Uint8Array] => [`a good file cut at ${length}`, good.subarray(0, length)]),
  ];
  return files.map(([name, bytes]) => ({ name, bytes }));
}

/** An array of arrays of arrays. */
function nested(depth: number): Uint8Array {
  const level = concat([bytesOf(Uint32Array.of(9)), bytesOf(BigUint64Array.of(1n))]);
  return concat(Array.from({ length: depth }, () => level));
}
