// One run at a time of a view: its form starts one, a button stops it, the fields rest meanwhile. What a run does is the view's.

import { byId, showFault } from './dom.js';
import { explain } from './format.js';

/**
 * Wires up `VIEW-form`, its button `VIEW-run`, and `VIEW-stop`, `VIEW-fields` and `VIEW-fault`. `begin()` is called when the user
 * asks for a run while a model is loaded and none is under way: it answers with what to do, a function of a signal, or null.
 * `onChange(isBusy)` hears of every change, of the model's too.
 */
export function makeRuns({ engine, view, begin, onChange = () => {} }) {
  const part = (name) => byId(`${view}-${name}`);
  let control = null;

  async function run(work) {
    control = new AbortController();
    const { signal } = control;
    showFault(part('fault'), null);
    update();
    try {
      await work(signal);
    } catch (error) {
      if (!signal.aborted) showFault(part('fault'), explain(error));
    }
    control = null;
    update();
  }

  function update() {
    const isBusy = control !== null;
    part('run').hidden = isBusy;
    part('run').disabled = engine.edge === null;
    part('stop').hidden = !isBusy;
    part('fields').disabled = isBusy;
    onChange(isBusy);
  }

  part('form').addEventListener('submit', (event) => {
    event.preventDefault();
    const work = engine.edge && !control ? begin() : null;
    if (work) run(work);
  });
  part('stop').addEventListener('click', () => control?.abort());
  engine.onChange(update);
  update();
}
