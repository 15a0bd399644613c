// The few helpers every view builds its elements with. They know nothing of models.

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/** Makes an element: properties by name, attributes where the name has a dash, then children (nodes or text). */
export function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes('-') || key === 'role') element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A button that does `work` when it is pressed. */
export function button(label, work, properties = {}) {
  return make('button', { type: 'button', textContent: label, onclick: work, ...properties });
}

/** Fills a list of terms with `{ term: text }`; what is undefined or empty is left out. */
export function fillTerms(list, terms) {
  const rows = Object.entries(terms).filter(([, text]) => text !== undefined && text !== null && text !== '');
  list.replaceChildren(...rows.flatMap(([term, text]) => [make('dt', { textContent: term }), make('dd', { textContent: text })]));
}

/** Puts a message where faults are shown; null hides it. */
export function showFault(element, message) {
  element.textContent = message ?? '';
  element.hidden = !message;
}

/** Lets a text field grow with its text. */
export function fit(field) {
  field.style.height = 'auto';
  field.style.height = `${field.scrollHeight}px`;
}

/** Keeps the end of the page in view, unless the reader scrolled away from it. Call it when something was added. */
export function follower() {
  let isFollowing = true;
  let last = window.scrollY;
  return () => {
    if (window.scrollY < last - 4) isFollowing = false;
    const left = document.documentElement.scrollHeight - window.innerHeight - window.scrollY;
    if (left < 60) isFollowing = true;
    if (isFollowing) window.scrollTo({ top: document.documentElement.scrollHeight });
    last = window.scrollY;
  };
}

/** Hands a value to the user as a JSON file. */
export function saveJson(name, value) {
  const url = URL.createObjectURL(new Blob([`${JSON.stringify(value, null, 2)}\n`], { type: 'application/json' }));
  make('a', { href: url, download: `${name.replace(/[^\p{L}\p{N} ._-]/gu, '').trim().slice(0, 60) || 'untitled'}.json` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
