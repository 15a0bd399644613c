// Which view is shown: the page's address after '#' names it, so that links, the back button and reloads work.

import { byId } from './dom.js';

const NAMES = ['chat', 'tools', 'json', 'bench', 'models'];

/** Shows the view that the address names, now and when it changes; `onShow(name)` is called each time. */
export function startViews(onShow) {
  let wasShown = false;
  const show = () => {
    const wanted = location.hash.slice(1);
    // Other names are places in the page, such as the skip link's.
    const name = NAMES.includes(wanted) ? wanted : document.body.dataset.view;
    for (const other of NAMES) byId(`view-${other}`).hidden = other !== name;
    for (const link of document.querySelectorAll('.views a')) {
      if (link.hash === `#${name}`) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
    if (name === document.body.dataset.view && wasShown) return;
    wasShown = true;
    document.body.dataset.view = name;
    window.scrollTo({ top: 0 });
    onShow(name);
  };
  window.addEventListener('hashchange', show);
  show();
}
