// What loading the chosen model would take, told from its header before anything is downloaded.

import { HanzoEdge } from '@hanzo/edge';
import { byId, fillTerms, showFault } from './dom.js';
import { BACKENDS, bytes, explain } from './format.js';

/** Typing and clicking through options should not start a plan each. */
const PAUSE_MS = 250;

/** Builds the plan's place. `show(options)` plans with the options of a load; `show(null)` shows nothing, `stop()` ends one under way. */
export function makePlan() {
  let control = null;

  async function show(options) {
    control?.abort();
    const own = new AbortController();
    control = own;
    byId('plan').hidden = options === null;
    if (options === null) return;
    byId('plan-state').textContent = 'Looking at the model…';
    fillTerms(byId('plan-facts'), {});
    showFault(byId('plan-fault'), null);
    try {
      await new Promise((resolve) => { setTimeout(resolve, PAUSE_MS); });
      if (own.signal.aborted) return;
      const plan = await HanzoEdge.plan({ ...options, signal: own.signal });
      if (control !== own) return;
      fillTerms(byId('plan-facts'), termsOf(plan));
      showFault(byId('plan-fault'), plan.fits ? null : `This does not fit: ${plan.reason}`);
      byId('plan-state').textContent = '';
    } catch (error) {
      if (own.signal.aborted) return;
      byId('plan-state').textContent = '';
      showFault(byId('plan-fault'), explain(error));
    }
  }
  return {
    show,
    stop() {
      control?.abort();
      byId('plan-state').textContent = '';
    },
  };
}

function termsOf({ downloadBytes, memoryBytes, backend, quantization, contextTokens, reason, fits }) {
  const { weights, kv, scratch, total } = memoryBytes;
  return {
    Download: downloadBytes === 0 ? 'nothing: it is stored here' : bytes(downloadBytes),
    Memory: `${bytes(total)}: weights ${bytes(weights)}, context ${bytes(kv)}, working ${bytes(scratch)}`,
    Runs: `on ${BACKENDS[backend]}, weights in ${quantization}, ${contextTokens} tokens of context`,
    Why: fits ? reason : '',
  };
}
