// With a runtime that has explicit resource management: `await using`.

import { HanzoEdge } from '@hanzo/edge';

/** Closes the engine at its end. */
export async function count(text: string): Promise<number> {
  await using edge = await HanzoEdge.init();
  return (await edge.tokenize(text)).length;
}
