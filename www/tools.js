// The tools view: a question, the functions the model calls to answer it, what they gave, and the answer.

import { byId, follower, make } from './dom.js';
import { summary } from './format.js';
import { renderMarkdown } from './markdown.js';
import { makeRuns } from './runs.js';
import { TOOLS, runCall } from './toolbox.js';

/** Calls may lead to further calls, up to this many times; the last time the model has to answer. */
const MOST_ROUNDS = 3;
/** So that a small model which finds no end does not keep the user waiting. */
const MOST_TOKENS = 300;

/** Builds the view for an engine's holder. `onSpeed(tokensPerSecond)` hears how fast answers are written. */
export function makeTools({ engine, settings, onSpeed }) {
  const list = byId('tools-steps');

  async function ask(question, choice, signal) {
    list.replaceChildren(make('li', { className: 'user', textContent: question }));
    const messages = [{ role: 'user', content: question }];
    for (let round = 1; round <= MOST_ROUNDS; round += 1) {
      const toolChoice = round === 1 ? choice : round === MOST_ROUNDS ? 'none' : 'auto';
      const result = await answer(messages, toolChoice, signal);
      if (result.finishReason !== 'tool_calls') break;
      messages.push({ role: 'assistant', content: result.text || null, tool_calls: result.toolCalls });
      for (const call of result.toolCalls) messages.push({ role: 'tool', tool_call_id: call.id, content: JSON.stringify(resultOf(call)) });
    }
  }

  /** One answer: text, calls, or both, shown as they are written. */
  async function answer(messages, toolChoice, signal) {
    const text = make('div', { className: 'text' });
    const row = make('li', { className: 'answer writing' }, text);
    list.append(row);
    const follow = follower();
    const calls = [];
    const onToolCallDelta = ({ index, name, argumentsDelta }) => {
      calls[index] ??= callRow(row, name ?? '');
      calls[index].textContent += argumentsDelta;
      follow();
    };
    const stream = engine.edge.chat(messages, { maxTokens: MOST_TOKENS, ...settings.sampling(), tools: TOOLS, toolChoice, signal, onToolCallDelta });
    try {
      let written = '';
      for await (const piece of stream) {
        written += piece;
        renderMarkdown(text, written);
        follow();
      }
      const result = await stream.result;
      row.append(make('div', { className: 'meta' }, make('span', { textContent: summary(result) })));
      onSpeed(result.stats.decodeTokensPerSecond);
      return result;
    } finally {
      row.classList.remove('writing');
    }
  }

  /** Runs a call and shows what it gave. */
  function resultOf(call) {
    const value = runCall(call);
    list.append(make('li', { className: 'call-result' }, make('span', { className: 'note', textContent: `${call.function.name} gave` }), make('code', { textContent: JSON.stringify(value) })));
    return value;
  }

  byId('tools-list').append(...TOOLS.map(({ function: { name, description, parameters } }) => make('li', {},
    make('code', { textContent: `${name}(${Object.keys(parameters.properties).join(', ')})` }), ` ${description}`)));
  const begin = () => {
    const question = byId('tools-question').value.trim();
    return question ? (signal) => ask(question, byId('tools-choice').value, signal) : null;
  };
  makeRuns({ engine, view: 'tools', begin });
}

/** A call's place; answers where its arguments are written. */
function callRow(row, name) {
  const code = make('code', {});
  row.insertBefore(make('pre', { className: 'call', tabIndex: 0 }, make('span', { className: 'call-name', textContent: name }), code), row.querySelector('.meta'));
  return code;
}
