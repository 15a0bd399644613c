// The conversations, kept in this browser: a key each, so that two open pages do not overwrite each other's.

import { forget, keep, keysOf, read } from './kept.js';

const PREFIX = 'hanzo-edge-chat:';
const TITLE_LENGTH = 60;

/** A conversation's turn is `{ role, content }`, an answer's with a `note` on how it went. */
export function newChat() {
  return { id: crypto.randomUUID(), title: '', created: Date.now(), updated: Date.now(), turns: [] };
}

/** Every conversation, the latest first. */
export function listChats() {
  const chats = keysOf(PREFIX).map((key) => read(key, null)).filter(isChat);
  return chats.sort((a, b) => b.updated - a.updated);
}

/** The conversation as it is kept; null when it is not. */
export function findChat(id) {
  const chat = read(PREFIX + id, null);
  return isChat(chat) ? chat : null;
}

/** Keeps a conversation; whether there was room. An empty one is not kept. */
export function saveChat(chat) {
  if (chat.turns.length === 0) return true;
  chat.title ||= titleOf(chat.turns[0].content);
  chat.updated = Date.now();
  return keep(PREFIX + chat.id, chat);
}

/** Keeps a conversation's new name, which does not make it the latest. */
export function renameChat(chat, title) {
  chat.title = title.trim() || titleOf(chat.turns[0]?.content ?? '');
  return keep(PREFIX + chat.id, chat);
}

/** Forgets a conversation. */
export function deleteChat({ id }) {
  forget(PREFIX + id);
}

/** A conversation as it is exported. */
export function exportChat({ title, created, turns }) {
  return { title, created: new Date(created).toISOString(), messages: turns.map(({ role, content }) => ({ role, content })) };
}

function titleOf(text) {
  const line = text.trim().replace(/\s+/g, ' ');
  return line.length > TITLE_LENGTH ? `${line.slice(0, TITLE_LENGTH - 1)}…` : line;
}

/** What another version of this page, or another page of this origin, may have left is not trusted. */
function isChat(value) {
  return typeof value?.id === 'string' && typeof value.title === 'string' && Number.isFinite(value.updated) && Number.isFinite(value.created)
    && Array.isArray(value.turns) && value.turns.every((turn) => typeof turn?.content === 'string' && ['user', 'assistant'].includes(turn.role));
}
