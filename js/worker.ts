// The entry of the package's worker: an engine's host behind messages. Imports are static, which some bundlers require.

import { EngineHost } from './engine-host.js';
import type { ToHost } from './protocol.js';

const scope = globalThis as unknown as {
  postMessage(message: unknown): void;
  onmessage: ((event: MessageEvent<ToHost>) => void) | null;
};
const host = new EngineHost((message) => scope.postMessage(message));
scope.onmessage = (event) => host.receive(event.data);
