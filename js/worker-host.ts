// A worker as an engine's host: messages in, messages out. Knows no module.

import { EngineHost } from './engine-host.js';
import type { WasmModule } from './modules.js';
import type { ToHost } from './protocol.js';

/** Makes this worker an engine's host. */
export function serveEngine(module: WasmModule): void {
  const scope = globalThis as unknown as {
    postMessage(message: unknown): void;
    onmessage: ((event: MessageEvent<ToHost>) => void) | null;
  };
  const host = new EngineHost(module, (message) => scope.postMessage(message));
  scope.onmessage = (event) => host.receive(event.data);
}
