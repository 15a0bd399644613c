// The conversation: its turns, their look, and the answer being written.

import { EdgeError } from '@hanzo/edge';
import { renderMarkdown } from './markdown.js';

/** Builds the conversation. `onChange()` is called when an answer begins or ends. */
export function makeConversation({ settings, onChange, onStats }) {
  const list = document.getElementById('messages');
  let turns = [];
  let edge = null;
  let stream = null;

  async function send(text) {
    turns.push({ role: 'user', content: text });
    list.append(Object.assign(document.createElement('li'), { className: 'user', textContent: text }));
    await answer();
  }

  async function answer() {
    const row = makeAnswer();
    list.append(row.element);
    const follow = follower();
    follow();
    const system = settings.system();
    const messages = system ? [{ role: 'system', content: system }, ...turns] : turns;
    const own = edge.chat(messages, settings.sampling());
    stream = own;
    onChange();
    let text = '';
    try {
      const started = performance.now();
      let count = 0;
      for await (const piece of own) {
        text += piece;
        count += 1;
        row.show(text);
        follow();
        if (count > 1) onStats({ live: (count / (performance.now() - started)) * 1000 });
      }
      const result = await own.result;
      text = result.text;
      row.show(text);
      row.finish(describe(result), [['Copy', () => copy(text)], ['Again', again]]);
      onStats({ result });
    } catch (error) {
      row.fail(explain(error), [['Again', again]]);
    }
    if (stream !== own) return;
    if (text) turns.push({ role: 'assistant', content: text });
    stream = null;
    onChange();
    follow();
  }

  /** Answers the last question anew. */
  async function again(event) {
    const row = event.target.closest('.answer');
    if (stream || row !== list.lastElementChild) return;
    row.remove();
    if (turns.at(-1)?.role === 'assistant') turns.pop();
    await answer();
  }

  return {
    send,
    stop: () => stream?.cancel(),
    clear() {
      const old = stream;
      stream = null;
      old?.cancel();
      turns = [];
      list.replaceChildren();
      onChange();
    },
    use(next) { edge = next; },
    get isBusy() { return stream !== null; },
    get isEmpty() { return turns.length === 0; },
    get lastText() { return turns.at(-1)?.content ?? ''; },
  };
}

function makeAnswer() {
  const element = Object.assign(document.createElement('li'), { className: 'answer writing' });
  const text = Object.assign(document.createElement('div'), { className: 'text' });
  const meta = Object.assign(document.createElement('div'), { className: 'meta' });
  element.append(text, meta);
  element.setAttribute('aria-busy', 'true');
  const end = (actions) => {
    element.classList.remove('writing');
    element.removeAttribute('aria-busy');
    meta.append(...actions.map(([label, work]) => {
      const button = Object.assign(document.createElement('button'), { type: 'button', textContent: label });
      button.addEventListener('click', work);
      return button;
    }));
  };
  return {
    element,
    show: (value) => renderMarkdown(text, value),
    finish(summary, actions) {
      end(actions);
      meta.append(Object.assign(document.createElement('span'), { textContent: summary }));
    },
    fail(message, actions) {
      text.append(Object.assign(document.createElement('p'), { className: 'fault', textContent: message, role: 'alert' }));
      end(actions);
    },
  };
}

/** Keeps the end in view, unless the reader scrolled away from it. */
function follower() {
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

const ENDS = { length: 'stopped at the longest answer', abort: 'stopped', context: 'the context is full' };

function describe({ usage, stats, finishReason }) {
  const parts = [`${usage.completionTokens} tokens`, `${stats.decodeTokensPerSecond.toFixed(1)} tokens/s`, `first after ${(stats.timeToFirstTokenMs / 1000).toFixed(1)} s`];
  if (ENDS[finishReason]) parts.push(ENDS[finishReason]);
  return parts.join(' · ');
}

function explain(error) {
  if (!(error instanceof EdgeError)) return String(error);
  if (error.code === 'context-overflow') return 'This conversation no longer fits the model’s context. Start a new chat.';
  return `${error.message} (${error.code})`;
}

async function copy(text) {
  await navigator.clipboard?.writeText(text).catch(() => {});
}
