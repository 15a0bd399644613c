// Tells a model file from what servers send in its place, by its first bytes.

import { EdgeError } from './errors.js';

/** Says what is wrong with a file whose beginning is not that of a model; null when it may be one. */
export function faultOfBeginning(bytes: Uint8Array, name: string): EdgeError | null {
  const fault = (what: string) => new EdgeError('malformed-file', `${name} is ${what}, not a model file`, { path: name });
  if (bytes.length === 0) return fault('empty');
  const text = new TextDecoder('latin1').decode(bytes.subarray(0, 64)).trimStart();
  if (text.startsWith('version https://git-lfs')) return fault('a Git LFS pointer (the file itself was not fetched)');
  if (/^<(!doctype|html|\?xml|head|body)/i.test(text)) return fault('a web page');
  if (/^[{[]/.test(text)) return fault('a JSON text');
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) return fault('gzip-compressed');
  return null;
}
