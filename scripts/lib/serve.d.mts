// Types of serve.mjs, for the tests.

import type { IncomingMessage, ServerResponse } from 'node:http';

/** A running server. */
export interface Site {
  url: string;
  port: number;
  close(): Promise<void>;
}

/** What is at a path: a folder (where the path ends in '/'), a file, an object as JSON, or a function that answers. */
export type Route = string | object | ((request: IncomingMessage, response: ServerResponse) => void);

/** Serves what the routes say. */
export function serve(routes: Record<string, Route>, options?: { port?: number; orNext?: boolean; isolated?: boolean; headers?: Record<string, string>; onFile?: (path: string) => void }): Promise<Site>;
