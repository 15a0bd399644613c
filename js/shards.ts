// The naming rule of split models: `name-00002-of-00003.gguf`.

/** All shards of the split model that a URL or path is one of, in order; null when it is not split. */
export function shardUrls(url: string): string[] | null {
  const match = /-(\d{5})-of-(\d{5})(?=\.gguf(?:[?#]|$))/.exec(url);
  if (!match?.[2]) return null;
  const total = Number(match[2]);
  if (total < 1 || total > 1000) return null;
  const number = (index: number) => String(index).padStart(5, '0');
  return Array.from({ length: total }, (_, index) => url.replace(match[0], `-${number(index + 1)}-of-${match[2]}`));
}
