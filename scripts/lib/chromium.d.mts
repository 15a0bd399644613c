// Types of chromium.mjs, for the tests.

import type { Browser } from 'playwright-core';

/** Starts a headless Chromium with WebGPU; the caller closes it. */
export function launchChromium(options?: { flags?: string[] }): Promise<Browser>;
