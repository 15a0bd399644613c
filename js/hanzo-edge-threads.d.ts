// The modules with threads have the exports of the base module and those of src/web/threads.rs.

export * from './hanzo-edge.js';
export { default } from './hanzo-edge.js';

/** Works for the engines of the memory; returns when the thread may go. */
export function runThread(): void;

/** Lets that many threads go, as soon as they are free. */
export function releaseThreads(count: number): void;

/** Says that the calling thread stopped in a trap. */
export function noteThreadFault(): void;

/** What instantiation in a thread gives. */
export interface ThreadInitOutput {
  /** Frees the calling thread's stack. */
  __wbindgen_thread_destroy(): void;
}

export function initSync(source: { module: WebAssembly.Module; memory: WebAssembly.Memory; thread_stack_size: number }): ThreadInitOutput;
