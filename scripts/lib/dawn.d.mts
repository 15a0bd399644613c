// Types of dawn.mjs, for the tests.

/** Defines `navigator.gpu` in Node. */
export function provideGpu(): Promise<void>;
