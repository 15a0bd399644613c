// The package's worker, but the first worker of a page fails at its first answer, as one does whose module stopped.

import '/dist/worker.js';

addEventListener('message', ({ data }) => {
  // At once: a timer might fire when a fast engine has answered already.
  if (data.type === 'call' && data.call.name === 'generate' && new URL(location.href).searchParams.has('fail')) throw new Error('on purpose');
});
