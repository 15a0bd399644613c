// Finds the files of `hf:owner/repo[:quant]` on the Hugging Face hub, with their hashes.

import { EdgeError } from './errors.js';
import type { EdgeErrorCode } from './errors.js';
import { shardUrls } from './model-names.js';
import type { HubModel } from './model-names.js';
import type { PlacedFile } from './protocol.js';

const HUB = 'https://huggingface.co';
/** What to take when no quantization was named, best first. */
const PREFERRED = ['Q4_K_M', 'Q4_0', 'Q4_1', 'Q4_K_S', 'Q5_K_M', 'Q6_K', 'Q8_0', 'BF16', 'F16', 'F32'];

interface TreeRow {
  type?: string;
  path?: string;
  size?: number;
  lfs?: { oid?: string; size?: number };
}

/** Asks the hub, once, which files make up the model. Whether asking again may help is told by the error's code, 'network'. */
export async function resolveHub(model: HubModel, options: { fetch: typeof fetch; headers: [string, string][]; signal: AbortSignal }): Promise<PlacedFile[]> {
  const name = `${model.owner}/${model.repo}`;
  const url = `${HUB}/api/models/${name}/tree/main?recursive=true`;
  const rows = await readTree(url, options);
  const files = rows.filter((row) => row.type === 'file' && row.path?.endsWith('.gguf') && !/mmproj/i.test(row.path));
  const chosen = choose(files, model, name);
  return chosen.map((row) => {
    const path = row.path ?? '';
    const sha256 = row.lfs?.oid;
    const bytes = row.lfs?.size ?? row.size;
    return {
      kind: 'url',
      urls: [`${HUB}/${name}/resolve/main/${path.split('/').map(encodeURIComponent).join('/')}`],
      name: path,
      ...(sha256 ? { sha256 } : {}),
      ...(bytes === undefined ? {} : { bytes }),
    };
  });
}

async function readTree(url: string, options: { fetch: typeof fetch; headers: [string, string][]; signal: AbortSignal }): Promise<TreeRow[]> {
  let response: Response;
  try {
    response = await options.fetch(url, { headers: options.headers, signal: options.signal });
  } catch (error) {
    if (options.signal.aborted) throw options.signal.reason;
    throw new EdgeError('network', `${url} could not be fetched: ${error instanceof Error ? error.message : String(error)}`, { path: url, cause: error });
  }
  const { ok, status } = response;
  const fault = (code: EdgeErrorCode, what: string) => new EdgeError(code, `${url} answered with ${what}`, { path: url });
  if ([401, 404].includes(status)) throw fault('not-found', `HTTP status ${status}: no such public repository`);
  if (!ok) throw fault(status < 500 && ![408, 429].includes(status) ? 'not-found' : 'network', `HTTP status ${status}`);
  const rows: unknown = await response.json().catch(() => null);
  if (!Array.isArray(rows)) throw fault('malformed-file', 'something else than a list of files');
  return rows as TreeRow[];
}

/** The file of the wanted quantization, or all of its shards. */
function choose(files: TreeRow[], model: HubModel, name: string): TreeRow[] {
  const wanted = model.quant ? [model.quant] : PREFERRED;
  for (const quant of wanted) {
    const hit = files.find((row) => quantOf(row.path ?? '') === quant.toUpperCase());
    if (hit) return withShards(hit, files);
  }
  const [only] = files;
  if (!model.quant && only) return withShards(only, files);
  const found = files.map((row) => row.path).join(', ') || 'no .gguf file';
  throw new EdgeError('not-found', `${name} has no ${model.quant ? `${model.quant} file` : 'GGUF model'}; it has ${found}`, { path: `hf:${name}` });
}

function withShards(hit: TreeRow, files: TreeRow[]): TreeRow[] {
  return (shardUrls(hit.path ?? '') ?? [hit.path]).map((path) => {
    const row = files.find((file) => file.path === path);
    if (!row) throw new EdgeError('not-found', `the shard ${path} is missing from the repository`, { path: path ?? '' });
    return row;
  });
}

/** The quantization in a file name: its last word that looks like one. */
function quantOf(path: string): string | null {
  const stem = path.split('/').at(-1)?.replace(/-\d{5}-of-\d{5}(?=\.gguf$)/, '').replace(/\.gguf$/, '') ?? '';
  return /(?:^|[.-])((?:IQ|Q)\d(?:_\w+)?|BF16|F16|F32|MXFP4(?:_\w+)?)$/i.exec(stem)?.[1]?.toUpperCase() ?? null;
}
