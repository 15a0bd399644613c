// A page may not start a worker of another origin, but its own worker may import one.

import 'PACKAGE/worker-relaxed.js';
