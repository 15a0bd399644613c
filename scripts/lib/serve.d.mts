// Types of serve.mjs, for the tests.

/** A running server. */
export interface Site {
  url: string;
  port: number;
  close(): Promise<void>;
}

/** Serves folders (paths that end in '/'), files, and objects as JSON. */
export function serve(routes: Record<string, string | object>, options?: { port?: number; orNext?: boolean; isolated?: boolean; headers?: Record<string, string>; onFile?: (path: string) => void }): Promise<Site>;
