// Numbers and errors in words. It knows no elements.

import { EdgeError } from '@hanzo/edge';

/** A size in bytes, in decimal units as download sizes are given. */
export function bytes(count) {
  if (count >= 1e9) return `${(count / 1e9).toFixed(2)} GB`;
  if (count >= 1e6) return `${(count / 1e6).toFixed(count < 1e7 ? 1 : 0)} MB`;
  return `${Math.ceil(count / 1e3)} kB`;
}

/** A duration in milliseconds. */
export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** Tokens a second, with as many digits as mean something. */
export function rate(perSecond) {
  return perSecond >= 100 ? perSecond.toFixed(0) : perSecond.toFixed(1);
}

/** The backends' names for people. */
export const BACKENDS = { webgpu: 'WebGPU', cpu: 'CPU' };

const ENDS = { length: 'stopped at the longest answer', abort: 'stopped', context: 'the context is full' };

/** A finished answer in one line. */
export function summary({ usage, stats, finishReason }) {
  const parts = [`${usage.completionTokens} tokens`, `${rate(stats.decodeTokensPerSecond)} tokens/s`, `first after ${duration(stats.timeToFirstTokenMs)}`];
  if (ENDS[finishReason]) parts.push(ENDS[finishReason]);
  return parts.join(' · ');
}

/** What went wrong, for the user. */
export function explain(error) {
  if (!(error instanceof EdgeError)) return error instanceof Error ? error.message : String(error);
  if (error.code === 'context-overflow') return 'This conversation no longer fits the model’s context. Start a new chat.';
  return `${error.message} (${error.code})`;
}
