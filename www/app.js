// The demo page: connects the views to the one loaded model. Uses nothing but the package's public API.

import { makeBench } from './bench.js';
import { makeChat } from './chat.js';
import { byId } from './dom.js';
import { makeEngine } from './engine.js';
import { BACKENDS, rate } from './format.js';
import { makeJson } from './json.js';
import { makeModelCard } from './model.js';
import { makeSettings } from './settings.js';
import { makeStored } from './stored.js';
import { makeTools } from './tools.js';
import { startViews } from './views.js';

const engine = makeEngine();
/** The view that is shown. */
let view = '';
const settings = makeSettings();
const card = makeModelCard(engine);
const chat = makeChat({ engine, settings, load: card.load, onSpeed: showSpeed });
makeTools({ engine, settings, onSpeed: showSpeed });
makeJson({ engine, settings, onSpeed: showSpeed });
makeBench({ engine, onSpeed: showSpeed });
const stored = makeStored();

/** The chip in the bar: what computes, and how fast it last was. */
function showSpeed(speed) {
  if (!engine.edge) return;
  byId('chip-text').textContent = BACKENDS[engine.edge.diagnostics.backend] + (speed ? ` · ${rate(speed)} tokens/s` : '');
}

engine.onChange(({ edge }) => {
  byId('chip').hidden = edge === null;
  showSpeed(0);
  if (edge && view === 'models') stored.show();
});

// The card is where the model is missed: in every view while none is loaded, and in the models' view always.
const placeCard = () => {
  const slot = byId(`view-${view}`).querySelector('.model-slot');
  if (byId('model-card').parentElement !== slot) slot.append(byId('model-card'));
  byId('model-card').hidden = engine.edge !== null && view !== 'models';
};
engine.onChange(placeCard);
startViews((name) => {
  view = name;
  placeCard();
  if (name === 'chat') chat.show();
  if (name === 'models') stored.show();
});

// Lets the page open without a network once it was here. Not every browser or server allows it, and nothing else needs it.
navigator.serviceWorker?.register('sw.js').catch(() => {});

document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && !settings.isOpen) chat.stop();
});
