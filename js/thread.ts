// The entry of a thread of the module hanzo-edge-threads.

import * as glue from './hanzo-edge-threads.js';
import { serveThread } from './thread-host.js';

serveThread(glue);
