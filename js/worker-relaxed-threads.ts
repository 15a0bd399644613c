// The entry of the package's worker with the module hanzo-edge-relaxed-threads. Imports are static, which some bundlers require.

import { MODULE } from './module-relaxed-threads.js';
import { serveEngine } from './engine-host.js';

serveEngine(MODULE);
