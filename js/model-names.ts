// What models and their files are called: `hf:owner/repo[:quant]` on the Hugging Face hub, `name-00002-of-00003.gguf` for the
// parts of a split one, and the names in lists of stored models.

import { EdgeError } from './errors.js';
import type { FileSpec } from './protocol.js';

/** What names a repository's model. */
export interface HubModel {
  owner: string;
  repo: string;
  quant: string | null;
}

/** Reads `hf:owner/repo[:quant]`; null when the text does not begin with `hf:`. */
export function parseHubName(text: string): HubModel | null {
  if (!text.startsWith('hf:')) return null;
  const match = /^hf:([\w.-]+)\/([\w.-]+)(?::([\w.-]+))?$/.exec(text);
  const [, owner, repo, quant] = match ?? [];
  if (!owner || !repo) throw new EdgeError('invalid-argument', `expected hf:owner/repo or hf:owner/repo:quantization, found ${text}`, { path: 'model' });
  return { owner, repo, quant: quant ?? null };
}

/** The name that `parseHubName` reads. */
export function hubName({ owner, repo, quant }: HubModel): string {
  return `hf:${owner}/${repo}${quant === null ? '' : `:${quant}`}`;
}

/** What a model is called in lists, told from its first file: as its user named it. */
export function storedName(spec: FileSpec): string {
  switch (spec.kind) {
    case 'hub': return hubName(spec);
    case 'url': return spec.urls[0] ?? spec.name;
    default: return spec.name;
  }
}

/** All shards of the split model that a URL or path is one of, in order; null when it is not split. */
export function shardUrls(url: string): string[] | null {
  const match = /-(\d{5})-of-(\d{5})(?=\.gguf(?:[?#]|$))/.exec(url);
  if (!match?.[2]) return null;
  const total = Number(match[2]);
  if (total < 1 || total > 1000) return null;
  const number = (index: number) => String(index).padStart(5, '0');
  return Array.from({ length: total }, (_, index) => url.replace(match[0], `-${number(index + 1)}-of-${match[2]}`));
}
