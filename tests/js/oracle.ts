// What an independent engine answered, and how ours is compared with it.

import { readFileSync } from 'node:fs';

/** A recorded greedy answer. */
export interface Recording {
  prompt: string;
  prompt_ids: number[];
  greedy_ids: number[];
  /** Between the two highest logits at each position. */
  greedy_margins: number[];
}

const MODEL = 'smollm2-135m-instruct-q4_1';

/** The recorded answers of the default model. */
export const RECORDINGS = (JSON.parse(readFileSync('tests/fixtures/oracle/greedy.json', 'utf8')) as Record<string, Recording[]>)[MODEL] ?? [];

/** Texts and their ids. */
export const TOKENIZED = (JSON.parse(readFileSync('tests/fixtures/oracle/tokenize.json', 'utf8')) as Record<string, { text: string; ids: number[] }[]>)[MODEL] ?? [];

/** How often the most likely token after each forced position is the recorded one. */
export interface Agreement {
  positions: number;
  agreeing: number;
  /** Disagreements where the recorded engine was sure. */
  clearMisses: string[];
}

/** Forces recordings through `score` (the most likely next token after each token). */
export async function agreement(score: (ids: number[]) => Promise<ArrayLike<number>>, recordings = RECORDINGS): Promise<Agreement> {
  const total: Agreement = { positions: 0, agreeing: 0, clearMisses: [] };
  for (const { prompt_ids: prompt, greedy_ids: answer, greedy_margins: margins } of recordings) {
    const argmax = await score([...prompt, ...answer.slice(0, -1)]);
    for (const [i, id] of answer.entries()) {
      const found = argmax[prompt.length - 1 + i];
      total.positions += 1;
      if (found === id) total.agreeing += 1;
      else if ((margins[i] ?? 0) >= 0.5) total.clearMisses.push(`position ${i} of ${JSON.stringify(answer.slice(0, 4))}: ${found} for ${id}, margin ${margins[i]}`);
    }
  }
  return total;
}

/** Texts and their vectors. */
export const EMBEDDED = (JSON.parse(readFileSync('tests/fixtures/oracle/embeddings.json', 'utf8')) as Record<string, { text: string; pooling: 'mean' | 'last'; vector: number[] }[]>)[MODEL] ?? [];

/** The cosine of the angle between two vectors. */
export function cosine(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length) throw new Error(`${a.length} numbers and ${b.length}`);
  const dot = (x: ArrayLike<number>, y: ArrayLike<number>) => Array.from(x).reduce((sum, value, index) => sum + value * (y[index] ?? NaN), 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}
