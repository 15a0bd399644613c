// The entry of a thread of the module hanzo-edge-relaxed-threads.

import * as glue from './hanzo-edge-relaxed-threads.js';
import { serveThread } from './thread-host.js';

serveThread(glue);
