// The list of conversations: opens, renames, exports and deletes them, and lets a deletion be taken back.

import { exportChat, listChats, renameChat, saveChat } from './chats.js';
import { button, byId, make, saveJson } from './dom.js';

/**
 * Builds the list. `current()` is the conversation shown; `open(chat)` shows another, `open(null)` a new one; `discard()`
 * deletes the one shown.
 */
export function makeChatList({ current, open, discard }) {
  const list = byId('chat-list');
  let deleted = null;

  function show() {
    const shown = current();
    const chats = listChats();
    byId('chats-empty').hidden = chats.length > 0;
    byId('export-chats').hidden = chats.length === 0;
    list.replaceChildren(...chats.map((chat) => rowOf(chat, chat.id === shown.id)));
    byId('undo-delete').hidden = deleted === null;
  }

  function rowOf(chat, isCurrent) {
    const title = button(chat.title, () => {
      open(chat);
      byId('sessions').hidePopover?.();
    }, { className: 'chat-title' });
    if (!isCurrent) return make('li', {}, title);
    title.setAttribute('aria-current', 'true');
    const row = make('li', { className: 'current' }, title);
    row.append(make('div', { className: 'chat-actions' },
      button('Rename', () => rename(row, chat)),
      button('Export', () => saveJson(chat.title, exportChat(chat))),
      button('Delete', () => remove(chat))));
    return row;
  }

  function rename(row, chat) {
    const field = make('input', { value: chat.title, maxLength: 200, 'aria-label': 'The conversation’s name' });
    let isDone = false;
    const end = (isKept) => {
      if (isDone) return;
      isDone = true;
      if (isKept) {
        // The conversation shown is the one being written to, not the copy in the list.
        const live = current().id === chat.id ? current() : chat;
        renameChat(live, field.value);
      }
      show();
      list.querySelector('.current .chat-title')?.focus();
    };
    field.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' && event.key !== 'Escape') return;
      event.preventDefault();
      event.stopPropagation();
      end(event.key === 'Enter');
    });
    field.addEventListener('blur', () => end(true));
    row.replaceChildren(field);
    field.focus();
    field.select();
  }

  async function remove(chat) {
    deleted = chat;
    discard();
    await open(null);
    byId('undo').focus();
  }

  byId('undo').addEventListener('click', () => {
    const chat = deleted;
    deleted = null;
    saveChat(chat);
    open(chat);
  });
  byId('export-chats').addEventListener('click', () => saveJson('conversations', listChats().map(exportChat)));
  // Another page of this origin wrote or deleted one.
  window.addEventListener('storage', show);
  return { show, forgetDeleted() { deleted = null; } };
}
