// The types of what the tests use of the repository's scripts.

declare module '#scripts/chromium.mjs' {
  import type { Browser } from 'playwright-core';
  export function launchChromium(options?: { flags?: string[] }): Promise<Browser>;
}

declare module '#scripts/site.mjs' {
  export function serveSite(options?: { port?: number; orNext?: boolean; isolated?: boolean; headers?: Record<string, string>; extra?: Record<string, string | object | ((request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => void)> }): Promise<{ url: string; port: number; close(): Promise<void> }>;
}
