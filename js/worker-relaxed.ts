// The entry of the package's worker with the module hanzo-edge-relaxed. Imports are static, which some bundlers require.

import { MODULE } from './module-relaxed.js';
import { serveEngine } from './engine-host.js';

serveEngine(MODULE);
