// The entry of the package's worker with the module hanzo-edge. Imports are static, which some bundlers require.

import { MODULE } from './module.js';
import { serveEngine } from './engine-host.js';

serveEngine(MODULE);
