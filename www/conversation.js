// The conversation shown: its turns, their look, and the answer being written.

import { deleteChat, findChat, newChat, saveChat } from './chats.js';
import { button, byId, follower, make } from './dom.js';
import { explain, summary } from './format.js';
import { renderMarkdown } from './markdown.js';

/**
 * Builds the conversation. `onChange()` is called when an answer begins or ends and when another conversation is shown,
 * `onSpeed(tokensPerSecond)` while one is written, `onFault(message)` when it could not be kept.
 */
export function makeConversation({ engine, settings, onChange, onSpeed, onFault }) {
  const list = byId('messages');
  let chat = newChat();
  let stream = null;
  /** The answer being written, to its end. */
  let answering = Promise.resolve();

  async function send(text) {
    chat.turns.push({ role: 'user', content: text });
    list.append(userRow(text));
    save(chat);
    await answer();
  }

  function answer() {
    answering = write();
    return answering;
  }

  async function write() {
    const own = chat;
    const row = answerRow();
    list.append(row.element);
    const follow = follower();
    follow();
    const writing = engine.edge.chat(messagesOf(own, settings.system()), settings.sampling());
    stream = writing;
    onChange();
    let text = '';
    let note;
    try {
      let started = 0;
      let count = 0;
      for await (const piece of writing) {
        text += piece;
        row.show(text);
        follow();
        if (count > 0) onSpeed((count / (performance.now() - started)) * 1000);
        else started = performance.now();
        count += 1;
      }
      const result = await writing.result;
      text = result.text;
      note = summary(result);
      row.show(text);
      row.finish(note, actionsFor(() => text));
      onSpeed(result.stats.decodeTokensPerSecond);
    } catch (error) {
      row.fail(explain(error), [button('Again', again)]);
    }
    if (text && !own.isDeleted) {
      own.turns.push({ role: 'assistant', content: text, ...(note ? { note } : {}) });
      save(own);
    }
    stream = null;
    onChange();
    follow();
  }

  const actionsFor = (text) => [button('Copy', () => copy(text())), button('Again', again)];

  /** Answers the last question anew. */
  async function again(event) {
    const row = event.target.closest('.answer');
    if (stream || row !== list.lastElementChild || !engine.edge) return;
    row.remove();
    if (chat.turns.at(-1)?.role === 'assistant') chat.turns.pop();
    await answer();
  }

  function save(one) {
    if (!saveChat(one)) onFault('This browser’s storage takes no more: the conversation lasts as long as this page. Export or delete others.');
  }

  return {
    send,
    stop: () => stream?.cancel(),
    /** Shows another conversation; null a new one. An answer being written stops, and keeps what it has. */
    async open(next) {
      stream?.cancel();
      await answering;
      chat = next === null ? newChat() : (findChat(next.id) ?? next);
      list.replaceChildren(...chat.turns.map((turn) => (turn.role === 'user' ? userRow(turn.content) : finishedRow(turn, actionsFor))));
      onChange();
    },
    /** Deletes what is shown for good, also when its answer is still being written. */
    discard() {
      chat.isDeleted = true;
      deleteChat(chat);
    },
    get chat() { return chat; },
    get isBusy() { return stream !== null; },
    get isEmpty() { return chat.turns.length === 0; },
    get lastText() { return chat.turns.at(-1)?.content ?? ''; },
  };
}

function messagesOf({ turns }, system) {
  const messages = turns.map(({ role, content }) => ({ role, content }));
  return system ? [{ role: 'system', content: system }, ...messages] : messages;
}

const userRow = (text) => make('li', { className: 'user', textContent: text });

/** An answer of an earlier visit. */
function finishedRow({ content, note }, actionsFor) {
  const row = answerRow();
  row.show(content);
  row.finish(note ?? '', actionsFor(() => content));
  return row.element;
}

function answerRow() {
  const text = make('div', { className: 'text' });
  const meta = make('div', { className: 'meta' });
  const element = make('li', { className: 'answer writing', 'aria-busy': 'true' }, text, meta);
  const end = (actions) => {
    element.classList.remove('writing');
    element.removeAttribute('aria-busy');
    meta.append(...actions);
  };
  return {
    element,
    show: (value) => renderMarkdown(text, value),
    finish(note, actions) {
      end(actions);
      meta.append(make('span', { textContent: note }));
    },
    fail(message, actions) {
      text.append(make('p', { className: 'fault', textContent: message, role: 'alert' }));
      end(actions);
    },
  };
}

async function copy(text) {
  await navigator.clipboard?.writeText(text).catch(() => {});
}
