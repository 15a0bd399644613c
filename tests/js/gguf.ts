// Writes small GGUF files byte by byte, damaged ones above all.

/** A metadata value: its type number and its bytes. */
export interface Value {
  type: number;
  bytes: Uint8Array;
}

/** A tensor's row in the header. */
export interface TensorInfo {
  name: string;
  dims: bigint[];
  type: number;
  offset: bigint;
}

/** A GGUF file's parts; `data` comes after the header, aligned to 32. */
export interface GgufParts {
  version?: number;
  fields?: [string, Value][];
  tensors?: TensorInfo[];
  data?: Uint8Array;
  /** Counts to write instead of the true ones. */
  counts?: { tensors?: bigint; fields?: bigint };
}

/** Little-endian bytes of numbers. */
export function bytesOf(view: Uint32Array | BigUint64Array | Float32Array | Int32Array): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength).slice();
}

export const u32 = (value: number): Value => ({ type: 4, bytes: bytesOf(Uint32Array.of(value)) });
export const i32 = (value: number): Value => ({ type: 5, bytes: bytesOf(Int32Array.of(value)) });
export const text = (value: string | Uint8Array): Value => ({ type: 8, bytes: string(value) });

/** An array of elements with one type. */
export function list(type: number, elements: Uint8Array[], count = BigInt(elements.length)): Value {
  return { type: 9, bytes: concat([bytesOf(Uint32Array.of(type)), bytesOf(BigUint64Array.of(count)), ...elements]) };
}

/** A length and the bytes. */
export function string(value: string | Uint8Array): Uint8Array {
  const bytes = typeof value === 'string' ? new TextEncoder().encode(value) : value;
  return concat([bytesOf(BigUint64Array.of(BigInt(bytes.length))), bytes]);
}

export function concat(parts: Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

/** The file's bytes. */
export function gguf({ version = 3, fields = [], tensors = [], data = new Uint8Array(), counts = {} }: GgufParts): Uint8Array {
  const header = concat([
    new TextEncoder().encode('GGUF'),
    bytesOf(Uint32Array.of(version)),
    bytesOf(BigUint64Array.of(counts.tensors ?? BigInt(tensors.length), counts.fields ?? BigInt(fields.length))),
    ...fields.flatMap(([name, value]) => [string(name), bytesOf(Uint32Array.of(value.type)), value.bytes]),
    ...tensors.flatMap(({ name, dims, type, offset }) => [
      string(name), bytesOf(Uint32Array.of(dims.length)), bytesOf(BigUint64Array.from(dims)), bytesOf(Uint32Array.of(type)), bytesOf(BigUint64Array.of(offset)),
    ]),
  ]);
  const padding = new Uint8Array((32 - (header.length % 32)) % 32);
  return concat([header, padding, data]);
}
