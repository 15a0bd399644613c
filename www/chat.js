// The chat's view: the message field, the ideas to begin with, the list of conversations and the one that is shown.

import { makeChatList } from './chat-list.js';
import { makeConversation } from './conversation.js';
import { button, byId, fit, make, showFault } from './dom.js';

const IDEAS = ['What is gravity?', 'Write a short poem about rain on a tin roof.', 'Explain photosynthesis to a child.', 'Give me three ideas for a quick dinner.'];

/** Builds the view. `load()` loads the chosen model; `onSpeed(tokensPerSecond)` hears how fast an answer is written. */
export function makeChat({ engine, settings, load, onSpeed }) {
  const input = byId('input');
  /** A question asked before the model was there. */
  let waiting = null;

  const conversation = makeConversation({
    engine,
    settings,
    onSpeed,
    onChange: update,
    onFault: (message) => showFault(byId('chat-fault'), message),
  });
  const list = makeChatList({
    current: () => conversation.chat,
    discard: () => conversation.discard(),
    open,
  });

  async function open(chat) {
    await conversation.open(chat);
    input.focus();
  }

  function ask(text) {
    if (text.trim() === '' || conversation.isBusy) return;
    if (!engine.edge) {
      waiting = text;
      input.value = text;
      fit(input);
      if (!engine.progress) load();
      return;
    }
    waiting = null;
    input.value = '';
    fit(input);
    list.forgetDeleted();
    conversation.send(text.trim());
  }

  /** Shows and enables what the state calls for. */
  function update() {
    const { isBusy, isEmpty } = conversation;
    byId('welcome').hidden = !isEmpty;
    byId('no-model').hidden = isEmpty || engine.edge !== null;
    byId('send').hidden = isBusy;
    byId('stop').hidden = !isBusy;
    byId('send').disabled = input.value.trim() === '';
    byId('new-chat').disabled = isEmpty;
    byId('chip').classList.toggle('busy', isBusy);
    if (!isBusy && !isEmpty && conversation.lastText) byId('announce').textContent = conversation.lastText;
    list.show();
  }

  engine.onChange(({ edge, fault, progress }) => {
    update();
    if (fault || (!edge && !progress)) waiting = null;
    if (!edge || waiting === null) return;
    ask(waiting);
  });
  byId('ideas').append(...IDEAS.map((idea) => make('li', {}, button(idea, () => ask(idea)))));
  byId('composer').addEventListener('submit', (event) => { event.preventDefault(); ask(input.value); });
  byId('stop').addEventListener('click', () => { conversation.stop(); input.focus(); });
  byId('new-chat').addEventListener('click', () => {
    byId('sessions').hidePopover?.();
    open(null);
  });
  input.addEventListener('input', () => { fit(input); byId('send').disabled = input.value.trim() === ''; });
  input.addEventListener('keydown', (event) => {
    // While an input method composes a word, Enter belongs to it.
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      ask(input.value);
    }
  });
  update();
  return { show: update, stop: () => conversation.stop() };
}
