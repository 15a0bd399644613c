// The extension's service worker, which runs the engine itself.

import { ask } from './ask.js';

globalThis.ask = ask;
