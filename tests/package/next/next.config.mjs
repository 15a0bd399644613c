// A static export: no server is needed to look at it. The roots are only named because this project lies inside another.

import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('.', import.meta.url));

export default { output: 'export', outputFileTracingRoot: root, turbopack: { root } };
