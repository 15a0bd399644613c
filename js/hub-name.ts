// The names of models on the Hugging Face hub: `hf:owner/repo[:quant]`.

import { EdgeError } from './errors.js';

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
