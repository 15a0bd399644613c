// What tests ask of the test page (pages/test.js), and how.

import type { Frame, Page } from 'playwright-core';
import type { Diagnostics, EdgeOptions, EmbedOptions, GenerateOptions, GenerateResult, MemoryReport } from '@hanzo/edge';

export interface Fault { isEdgeError: boolean; code?: string; message: string }
export type Outcome<T> = { value: T; error?: undefined } | { error: Fault; value?: undefined };
export type PlainOptions = Omit<EdgeOptions, 'model' | 'fetch' | 'signal' | 'onProgress'> & { model?: string; bytes?: number[] };
export type Answer = Omit<GenerateResult, 'tokens'> & { pieces: string[]; tokens: number[] };

/** What the test page offers. */
export interface PageTests {
  init(options: PlainOptions): Promise<Outcome<{ engine: number; diagnostics: Diagnostics }>>;
  chat(engine: number, options: GenerateOptions, stopAfter?: number): Promise<Outcome<Answer>>;
  abort(engine: number, after: number): Promise<Outcome<{ reader: unknown; result?: unknown }>>;
  responsiveness(engine: number, options: GenerateOptions): Promise<Outcome<{ ms: number; ticks: number; longestGapMs: number }>>;
  tokenize(engine: number, texts: string[]): Promise<Outcome<number[][]>>;
  embed(engine: number, input: string[], options?: EmbedOptions): Promise<Outcome<number[][]>>;
  kernels(): Promise<Outcome<{ count: number; faults: string[] }>>;
  shaders(): Promise<Outcome<{ label: string; errors: string[] }[]>>;
  memory(engine: number): Promise<Outcome<MemoryReport>>;
  diagnostics(engine: number): Promise<Diagnostics>;
  close(engine: number): Promise<Outcome<null>>;
  workerFailure(options: PlainOptions): Promise<Outcome<{ first: Fault; second: string | Fault; text: string; workers: number }>>;
  deviceLoss(options: PlainOptions): Promise<Outcome<{ error: Fault; ms: number; text: string; devices: number }>>;
  score(options: PlainOptions, lists: number[][]): Promise<Outcome<{ facts: Diagnostics; argmax: number[][] }>>;
}

/** Calls a function of the page. */
export async function callIn<Name extends keyof PageTests>(page: Page | Frame, name: Name, ...args: Parameters<PageTests[Name]>): Promise<Awaited<ReturnType<PageTests[Name]>>> {
  await page.waitForFunction(() => 'tests' in globalThis);
  return page.evaluate(
    ([key, values]) => (globalThis as unknown as { tests: Record<string, (...all: unknown[]) => Promise<unknown>> }).tests[key as string]?.(...(values as unknown[])),
    [name, args] as const,
  ) as Promise<Awaited<ReturnType<PageTests[Name]>>>;
}

/** The value of an outcome, which must be there. */
export function value<T>(outcome: Outcome<T>): T {
  if (outcome.error) throw new Error(`${outcome.error.code}: ${outcome.error.message}`);
  return outcome.value;
}
